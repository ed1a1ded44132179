package engine_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Each server of an address decides whether HTTP/2 is spoken with it, and a request to one that does not is misdirected.
func TestHTTP2OfServers(t *testing.T) {
	cert, key := certificate(t, "a.test")
	s := serve(t, with(map[string]string{"nginx.conf": `events {} http { ssl_certificate a.crt; ssl_certificate_key a.key;
		server { listen 443 ssl; server_name off.test; return 200 off; }
		server { listen 443 ssl; server_name on.test; http2 on; return 200 on; }
	}`}, "a.crt", cert, "a.key", key))
	for _, tt := range []struct {
		sni, host string
		major     int
		status    int
	}{
		{"off.test", "off.test", 1, 200}, {"on.test", "on.test", 2, 200}, {"other.test", "other.test", 1, 200},
		{"on.test", "off.test", 2, 421}, {"off.test", "on.test", 1, 200},
	} {
		transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: tt.sni},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, s.first)
			}}
		resp, err := (&http.Client{Transport: transport}).Get("https://" + tt.host + "/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		transport.CloseIdleConnections()
		if resp.ProtoMajor != tt.major || resp.StatusCode != tt.status {
			t.Errorf("%s by %s: HTTP/%d, %s", tt.host, tt.sni, resp.ProtoMajor, resp.Status)
		}
	}
}

// A request over HTTP/2 counts for limit_conn until its response was sent, which the client's window may hold back.
func TestLimitConnOverHTTP2(t *testing.T) {
	cert, key := certificate(t, "a.test")
	s := serve(t, with(map[string]string{"nginx.conf": `events {} http { ssl_certificate a.crt; ssl_certificate_key a.key; limit_conn_zone $binary_remote_addr zone=z:1m;
		server { listen 443 ssl; http2 on; root html; limit_conn z 1; }
	}`, "html/a": "content"}, "a.crt", cert, "a.key", key))
	conn, err := tls.Dial("tcp", s.first, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for i, want := range []string{"200", "503", "200"} {
		id := uint32(2*i + 1)
		block.Reset()
		for _, field := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "a"}, {":path", "/a"}} {
			_ = e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
		}
		if i == 2 { // the first one has been sent, and is over
			_ = f.WriteWindowUpdate(1, 100)
			if frame := nextFrame(t, f, func(h http2.FrameHeader) bool { return h.StreamID == 1 && h.Flags.Has(http2.FlagDataEndStream) }); frame == nil {
				return
			}
		}
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		frame := nextFrame(t, f, func(h http2.FrameHeader) bool { return h.StreamID == id && h.Type == http2.FrameHeaders })
		if header, ok := frame.(*http2.MetaHeadersFrame); !ok || header.PseudoValue("status") != want {
			t.Errorf("request %d: %v, want %s", i, frame, want)
		}
	}
}

// nextFrame reads up to a frame for which is reports true.
func nextFrame(t *testing.T, f *http2.Framer, is func(http2.FrameHeader) bool) http2.Frame {
	t.Helper()
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Error(err)
			return nil
		}
		if is(frame.Header()) {
			return frame
		}
	}
}
