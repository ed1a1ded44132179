package upstream_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/upstream"
)

// faultyTarget is a target of HTTP/2 that responds to each request but the first, to which it does what script says. It
// keeps its connections open.
type faultyTarget struct {
	tls      *tls.Config // nil: none
	script   func(f *http2.Framer, stream uint32) error
	requests atomic.Int32
}

func (s *faultyTarget) serve(p *wiretest.Peer) {
	var c net.Conn = p.Conn
	if s.tls != nil {
		c = tls.Server(p.Conn, s.tls)
	}
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	err := f.WriteSettings()
	for err == nil {
		var frame http2.Frame
		if frame, err = f.ReadFrame(); err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = f.WritePing(true, frame.Data)
			}
		case *http2.HeadersFrame:
			if s.requests.Add(1) == 1 {
				err = s.script(f, frame.StreamID)
			} else {
				err = respondOK(f, frame.StreamID)
			}
		}
	}
	_, _ = io.Copy(io.Discard, c) // the gateway ends it
}

func respondOK(f *http2.Framer, stream uint32) error {
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndHeaders: true, BlockFragment: status200()}); err != nil {
		return err
	}
	return f.WriteData(stream, true, []byte("ok"))
}

// frameOf returns the bytes of a frame.
func frameOf(write func(f *http2.Framer) error) []byte {
	var b bytes.Buffer
	f := http2.NewFramer(&b, nil)
	f.AllowIllegalWrites = true
	if err := write(f); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// No frame of a target that HTTP/2 forbids stops the client: the exchange ends, and later ones are served, whose connections are closed
// when they are idle. The client of net/http in Go 1.26 locks up where a window overflows.
func TestForbiddenFrames(t *testing.T) {
	secure := httptest.NewUnstartedServer(nil)
	secure.StartTLS()
	defer secure.Close()
	windowUpdate := func(stream, n uint32) []byte {
		return frameOf(func(f *http2.Framer) error { return f.WriteWindowUpdate(stream, n) })
	}
	settings := func(s ...http2.Setting) []byte {
		return frameOf(func(f *http2.Framer) error { return f.WriteSettings(s...) })
	}
	raw := func(kind http2.FrameType, flags http2.Flags, stream uint32, payload string) []byte {
		return frameOf(func(f *http2.Framer) error { return f.WriteRawFrame(kind, flags, stream, []byte(payload)) })
	}
	const most, stream = 1<<31 - 1, 1
	const endedWindow = "window of a stream that has ended"
	response := raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, stream, string(status200()))
	end := raw(http2.FrameData, http2.FlagDataEndStream, stream, "ok")
	for name, test := range map[string]struct {
		frames [][]byte
		want   string // of the error, or "" for a response
	}{
		"window of a stream":           {[][]byte{windowUpdate(stream, most), windowUpdate(stream, most)}, "FLOW_CONTROL_ERROR"},
		"window of a stream, the most": {[][]byte{windowUpdate(stream, most-65535), response, end}, ""},
		"window of a stream, later":    {[][]byte{response, windowUpdate(stream, most), windowUpdate(stream, most)}, "FLOW_CONTROL_ERROR"},
		endedWindow:                    {[][]byte{response, end, windowUpdate(stream, most), windowUpdate(stream, most)}, ""},
		"window of the connection":     {[][]byte{windowUpdate(0, most), windowUpdate(0, most)}, "FLOW_CONTROL_ERROR"},
		"windows of unknown streams":   {[][]byte{windowUpdate(99, most), windowUpdate(99, most), response, end}, ""},
		"increment of 0":               {[][]byte{windowUpdate(stream, 0)}, "PROTOCOL_ERROR"},
		"increment of 0, connection":   {[][]byte{windowUpdate(0, 0)}, "PROTOCOL_ERROR"},
		"windows by settings":          {[][]byte{windowUpdate(stream, most-65535), settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: most}), windowUpdate(stream, 1)}, "FLOW_CONTROL_ERROR"},
		"settings of a window":         {[][]byte{settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})}, "FLOW_CONTROL_ERROR"},
		"acknowledged settings":        {[][]byte{raw(http2.FrameSettings, http2.FlagSettingsAck, 0, ""), raw(http2.FrameSettings, http2.FlagSettingsAck, 0, "")}, "PROTOCOL_ERROR"},
		"reset of an unknown stream":   {[][]byte{raw(http2.FrameRSTStream, 0, 99, "\x00\x00\x00\x00"), response, end}, ""},
		"reset twice":                  {[][]byte{raw(http2.FrameRSTStream, 0, stream, "\x00\x00\x00\x02"), raw(http2.FrameRSTStream, 0, stream, "\x00\x00\x00\x02")}, "INTERNAL_ERROR"},
		"reset, then a window":         {[][]byte{raw(http2.FrameRSTStream, 0, stream, "\x00\x00\x00\x02"), windowUpdate(stream, most), windowUpdate(stream, most)}, "INTERNAL_ERROR"},
		"GOAWAY with an error":         {[][]byte{raw(http2.FrameGoAway, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x02")}, "INTERNAL_ERROR"},
		"GOAWAY, then a window":        {[][]byte{raw(http2.FrameGoAway, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x00"), windowUpdate(stream, most), windowUpdate(stream, most)}, "FLOW_CONTROL_ERROR"},
		"GOAWAYs of rising streams":    {[][]byte{raw(http2.FrameGoAway, 0, 0, "\x00\x00\x00\x01\x00\x00\x00\x00"), raw(http2.FrameGoAway, 0, 0, "\x7f\xff\xff\xff\x00\x00\x00\x00"), response, end}, ""},
		"push":                         {[][]byte{raw(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, stream, "\x00\x00\x00\x02\x88")}, "PROTOCOL_ERROR"},
		"content before a header":      {[][]byte{raw(http2.FrameData, 0, stream, "x")}, "PROTOCOL_ERROR"},
		"content of an unknown stream": {[][]byte{raw(http2.FrameData, 0, 99, "x")}, "PROTOCOL_ERROR"},
		"content behind the end":       {[][]byte{response, end, raw(http2.FrameData, 0, stream, "x")}, ""},
		"a header that is none":        {[][]byte{raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, stream, "\x40\x01A\x01b")}, "PROTOCOL_ERROR"},
		"a PING of 1 byte":             {[][]byte{raw(http2.FramePing, 0, 0, "x")}, "FRAME_SIZE_ERROR"},
	} {
		for scheme, o := range map[string]upstream.Options{
			"http":  {Protocol: upstream.H2C},
			"bytes": {Protocol: upstream.H2C, DialContext: dialBytes},
			"https": {Protocol: upstream.HTTP2, Scheme: "https", TLSConfig: &tls.Config{InsecureSkipVerify: true}},
		} {
			for _, body := range []string{"", "an upload that has not ended"} {
				if body != "" && name == endedWindow {
					continue // its connection ends, maybe below a later request
				}
				t.Run(name+" "+scheme+" "+body, func(t *testing.T) {
					leaktest.Check(t)
					target := &faultyTarget{script: func(f *http2.Framer, _ uint32) error { return writeFrames(f, test.frames) }}
					if scheme == "https" {
						target.tls = &tls.Config{Certificates: secure.TLS.Certificates, NextProtos: []string{"h2"}}
					}
					o.HeaderTimeout = -1 // nothing but the frames ends an exchange
					g := newGroup(t, o, upstream.Target{Addr: wiretest.Target(t, target.serve)})
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					got, err := exchangeWith(ctx, g, body)
					switch {
					case test.want == "" && err == nil && got == "ok":
					case test.want == "" || err == nil || !strings.Contains(err.Error(), test.want):
						t.Errorf("got %q, %v, want %q", got, err, test.want)
					}
					for range 3 {
						if got, err := exchangeWith(ctx, g, ""); got != "ok" {
							t.Errorf("a later request: %q, %v", got, err)
						}
					}
					ended := make(chan error, 1)
					go func() { g.Transport().(*upstream.Transport).CloseIdleConnections(); ended <- nil }()
					_ = wiretest.Await(t, ended, "the end of idle connections")
				})
			}
		}
	}
}

// dialBytes dials connections that are read byte by byte.
func dialBytes(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	return bytesConn{c}, err
}

type bytesConn struct{ net.Conn }

// Read implements net.Conn.
func (c bytesConn) Read(b []byte) (int, error) { return c.Conn.Read(b[:min(len(b), 1)]) }

// A target may open a window as far again as content was sent.
func TestWindowOfAnUpload(t *testing.T) {
	leaktest.Check(t)
	const first, rest = 65535, 100 // the window that a stream begins with, and what is beyond
	target := &faultyTarget{script: func(f *http2.Framer, stream uint32) error {
		if err := readContent(f, first); err != nil {
			return err
		}
		for _, stream := range []uint32{0, stream} {
			if err := f.WriteWindowUpdate(stream, 1<<31-1); err != nil {
				return err
			}
		}
		if err := readContent(f, rest); err != nil {
			return err
		}
		return respondOK(f, stream)
	}}
	g := newGroup(t, upstream.Options{Protocol: upstream.H2C}, upstream.Target{Addr: wiretest.Target(t, target.serve)})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if got, err := exchangeWith(ctx, g, strings.Repeat("x", first+rest)); got != "ok" {
		t.Errorf("got %q, %v", got, err)
	}
}

// readContent reads n bytes of content.
func readContent(f *http2.Framer, n int) error {
	for n > 0 {
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		if data, ok := frame.(*http2.DataFrame); ok {
			n -= len(data.Data())
		}
	}
	return nil
}

// writeFrames writes frames, forbidden ones too.
func writeFrames(f *http2.Framer, frames [][]byte) error {
	f.AllowIllegalWrites = true
	defer func() { f.AllowIllegalWrites = false }()
	for _, frame := range frames {
		if err := f.WriteRawFrame(http2.FrameType(frame[3]), http2.Flags(frame[4]), binary.BigEndian.Uint32(frame[5:]), frame[9:]); err != nil {
			return err
		}
	}
	return nil
}

// exchangeWith sends a request and returns the response's body. body, if not "", is a part of the request's, whose end
// comes behind the exchange.
func exchangeWith(ctx context.Context, g *upstream.Group, body string) (string, error) {
	l, err := g.Pick(ctx, request())
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(l.Context(ctx))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", g.Scheme()+"://"+l.Host()+"/", nil)
	if err != nil {
		return "", err
	}
	if body != "" {
		read, write := io.Pipe()
		defer write.CloseWithError(errors.New("the exchange has ended"))
		go func() { _, _ = io.WriteString(write, body) }()
		r.Body, r.ContentLength = read, -1
	}
	resp, err := g.Transport().RoundTrip(r)
	l.Done(upstream.Outcome{Err: err})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return string(content), err
}
