package proxy_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// headerBlock is a header section for HTTP/2, of lines "name: value".
func headerBlock(lines string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		_ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value})
	}
	return block.Bytes()
}

// framesOf returns the frames that the HTTP/2 server at addr sends on the stream of a request: names, and "end" behind
// the one that ends the stream.
func framesOf(t *testing.T, addr, method string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	block := headerBlock(":method: " + method + "\n:scheme: https\n:authority: a\n:path: /\n")
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndStream: true, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	for frames := ""; ; {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("after %q: %v", frames, err)
		}
		header := f.Header()
		if header.StreamID != 1 {
			continue
		}
		frames = strings.TrimSpace(frames + " " + header.Type.String())
		switch {
		case header.Type == http2.FrameRSTStream:
			return frames
		case header.Flags.Has(http2.FlagDataEndStream) && (header.Type == http2.FrameData || header.Type == http2.FrameHeaders):
			return frames + " end"
		}
	}
}

// http2Script is a target that speaks HTTP/2 without TLS, and sends frames in response to each request.
func http2Script(t *testing.T, respond func(f *http2.Framer, stream uint32) error) string {
	return wiretest.Target(t, func(p *wiretest.Peer) { followScript(p, p.R, respond) })
}

// http2TLSScript is http2Script over TLS.
func http2TLSScript(t *testing.T, respond func(f *http2.Framer, stream uint32) error) string {
	certificates := h2Server(t, http.NotFoundHandler()).TLS.Certificates
	return wiretest.Target(t, func(p *wiretest.Peer) {
		conn := tls.Server(p.Conn, &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}})
		followScript(conn, conn, respond)
	})
}

func followScript(w io.Writer, r io.Reader, respond func(f *http2.Framer, stream uint32) error) {
	if _, err := io.ReadFull(r, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	framer := http2.NewFramer(w, r)
	if framer.WriteSettings() != nil {
		return
	}
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = framer.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			err = respond(framer, f.StreamID)
		}
		if err != nil {
			return
		}
	}
}

// A response without content is one frame to a client that speaks HTTP/2, but for its trailers, however the target
// frames it.
func TestHTTP2ResponseWithoutContent(t *testing.T) { onPaths(t, testHTTP2ResponseWithoutContent) }
func testHTTP2ResponseWithoutContent(t *testing.T, via path) {
	leaktest.Check(t)
	http1 := func(response string) func(*testing.T) (upstream.Options, string) {
		return func(t *testing.T) (upstream.Options, string) {
			return upstream.Options{}, wiretest.Replying(t, response)
		}
	}
	// http2Target ends the stream with the header, with an empty DATA frame or trailers behind it, or not at all.
	http2Target := func(header, end string) func(*testing.T) (upstream.Options, string) {
		return func(t *testing.T) (upstream.Options, string) {
			return upstream.Options{Protocol: upstream.H2C}, http2Script(t, func(f *http2.Framer, stream uint32) error {
				err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(header), EndStream: end == "", EndHeaders: true})
				switch {
				case err != nil || end == "" || end == "none":
					return err
				case end == "data":
					return f.WriteData(stream, true, nil)
				}
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(end), EndStream: true, EndHeaders: true})
			})
		}
	}
	const one = "HEADERS end"
	for name, test := range map[string]struct {
		method string
		target func(*testing.T) (upstream.Options, string)
		want   string
	}{
		"304":                           {"GET", http1("HTTP/1.1 304 Not Modified\r\n\r\n"), one},
		"304, length":                   {"GET", http1("HTTP/1.1 304 Not Modified\r\nContent-Length: 15\r\n\r\n"), one},
		"304, chunked":                  {"GET", http1("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"), one},
		"304 behind a 103":              {"GET", http1("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 15\r\n\r\n"), "HEADERS " + one},
		"204":                           {"GET", http1("HTTP/1.1 204 No Content\r\n\r\n"), one},
		"HEAD":                          {"HEAD", http1("HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n"), one},
		"no bytes":                      {"GET", http1("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), one},
		"HTTP/2, 304":                   {"GET", http2Target(":status: 304\n", ""), one},
		"HTTP/2, 304, length":           {"GET", http2Target(":status: 304\ncontent-length: 15\n", ""), one},
		"HTTP/2, 304, length, data":     {"GET", http2Target(":status: 304\ncontent-length: 15\n", "data"), one},
		"HTTP/2, 304, data":             {"GET", http2Target(":status: 304\n", "data"), one},
		"HTTP/2, 304, no end":           {"GET", http2Target(":status: 304\n", "none"), one},
		"HTTP/2, 204":                   {"GET", http2Target(":status: 204\n", ""), one},
		"HTTP/2, 204, data":             {"GET", http2Target(":status: 204\n", "data"), one},
		"HTTP/2, 204, trailers":         {"GET", http2Target(":status: 204\ntrailer: x-sum\n", "x-sum: 1\n"), "HEADERS " + one},
		"HTTP/2, 304, no trailers":      {"GET", http2Target(":status: 304\ntrailer: x-sum\n", ""), "HEADERS DATA end"},
		"HTTP/2, 304, length, trailers": {"GET", http2Target(":status: 304\ncontent-length: 15\ntrailer: x-sum\n", "x-sum: 1\n"), "HEADERS " + one},
		"HTTP/2, HEAD":                  {"HEAD", http2Target(":status: 200\ncontent-length: 15\n", ""), one},
		"HTTP/2, no bytes":              {"GET", http2Target(":status: 200\n", ""), one},
	} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			o, target := test.target(t)
			s := h2Server(t, newProxy(t, via, proxy.Options{Upstream: groupAt(t, o, target), OnError: failed.add}))
			if got := framesOf(t, s.Listener.Addr().String(), test.method); got != test.want {
				t.Errorf("frames %q, want %q", got, test.want)
			}
			if len(failed.all) > 0 {
				t.Errorf("failures %v", failed.all)
			}
		})
	}
}
