package wiretest

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Frames is a client of HTTP/2 that sends one request, frame by frame.
type Frames struct {
	t       testing.TB
	framer  *http2.Framer
	block   bytes.Buffer
	encoder *hpack.Encoder
}

// NewFrames connects to a server of its own, without TLS, that serves h until the test ends.
func NewFrames(t testing.TB, h http.Handler) *Frames {
	t.Helper()
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Server(&http.Server{Handler: h, Protocols: &protocols, ErrorLog: Quiet()})
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); s.Close(); <-served })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	f := &Frames{t: t, framer: http2.NewFramer(conn, conn)}
	f.encoder = hpack.NewEncoder(&f.block)
	f.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = f.framer.WriteSettings()
	return f
}

// Post sends the header section of a POST, with the given fields as names and values in turn. end ends the stream.
func (f *Frames) Post(end bool, fields ...string) {
	f.header(end, append([]string{":method", "POST", ":scheme", "http", ":authority", "a", ":path", "/"}, fields...))
}

// Data sends a DATA frame. end ends the stream.
func (f *Frames) Data(end bool, content string) { _ = f.framer.WriteData(1, end, []byte(content)) }

// Trailers ends the stream with the given fields.
func (f *Frames) Trailers(fields ...string) { f.header(true, fields) }

func (f *Frames) header(end bool, fields []string) {
	f.block.Reset()
	for i := 0; i < len(fields); i += 2 {
		_ = f.encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	_ = f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.block.Bytes(), EndHeaders: true, EndStream: end})
}

// Response returns the header section of the response, and whether it ends the stream.
func (f *Frames) Response() (h http.Header, end bool) {
	f.t.Helper()
	for {
		frame, err := f.framer.ReadFrame()
		if err != nil {
			f.t.Fatal(err)
		}
		if frame, ok := frame.(*http2.MetaHeadersFrame); ok {
			h = http.Header{}
			for _, field := range frame.Fields {
				h.Add(field.Name, field.Value)
			}
			return h, frame.StreamEnded()
		}
	}
}

// Status returns the status of the response, or the name of the error that the stream was reset with, in lower case.
func (f *Frames) Status() string {
	f.t.Helper()
	for {
		frame, err := f.framer.ReadFrame()
		if err != nil {
			f.t.Fatal(err)
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return strings.ToLower(frame.ErrCode.String())
		}
	}
}
