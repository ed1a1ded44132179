package wsupgrade_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
	_ "github.com/culvert-go/culvert/wsupgrade/extendedconnect"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// h2Client is an HTTP/2 client on the level of frames.
type h2Client struct {
	*http2.Framer
	t       *testing.T
	conn    net.Conn
	connect bool // the server accepts extended CONNECT
	header  bytes.Buffer
	encoder *hpack.Encoder
	next    uint32
}

// dialH2 connects without TLS.
func dialH2(t *testing.T, addr string) *h2Client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return newH2Client(t, conn)
}

func newH2Client(t *testing.T, conn net.Conn) *h2Client {
	t.Helper()
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	c := &h2Client{Framer: http2.NewFramer(conn, conn), t: t, conn: conn, next: 1}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.encoder = hpack.NewEncoder(&c.header)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c.check(c.WriteSettings())
	f, err := c.ReadFrame()
	c.check(err)
	settings := f.(*http2.SettingsFrame)
	value, _ := settings.Value(http2.SettingEnableConnectProtocol)
	c.connect = value == 1
	c.check(c.WriteSettingsAck())
	return c
}

func (c *h2Client) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// open sends a header section, of "name value" lines, and returns the stream's number.
func (c *h2Client) open(end bool, lines ...string) uint32 {
	c.t.Helper()
	c.header.Reset()
	for _, line := range lines {
		name, value, _ := strings.Cut(line, " ")
		c.check(c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value}))
	}
	id := c.next
	c.next += 2
	c.check(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.header.Bytes(), EndHeaders: true, EndStream: end}))
	return id
}

// extendedConnect returns a browser's header section for a WebSocket.
func extendedConnect(path string, more ...string) []string {
	return append([]string{":method CONNECT", ":protocol websocket", ":scheme http", ":path " + path, ":authority culvert.test",
		"sec-websocket-version 13"}, more...)
}

// frame reads the next frame of the stream that is not a WINDOW_UPDATE.
func (c *h2Client) frame(id uint32) http2.Frame {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		c.check(err)
		if _, ok := f.(*http2.WindowUpdateFrame); f.Header().StreamID == id && !ok {
			return f
		}
	}
}

// status reads a response's header section and returns its status and fields.
func (c *h2Client) status(id uint32) (status string, fields http.Header) {
	c.t.Helper()
	f, ok := c.frame(id).(*http2.MetaHeadersFrame)
	if !ok {
		c.t.Fatalf("frame %v, want a header", f)
	}
	fields = http.Header{}
	for _, field := range f.RegularFields() {
		fields.Add(field.Name, field.Value)
	}
	return f.PseudoValue("status"), fields
}

// data reads n bytes.
func (c *h2Client) data(id uint32, n int) string {
	c.t.Helper()
	var got []byte
	for len(got) < n {
		f, ok := c.frame(id).(*http2.DataFrame)
		if !ok {
			c.t.Fatalf("frame %v after %q, want data", f, got)
		}
		got = append(got, f.Data()...)
	}
	return string(got)
}

// ended reads up to the end of the stream.
func (c *h2Client) ended(id uint32) {
	c.t.Helper()
	switch f := c.frame(id).(type) {
	case *http2.DataFrame:
		if !f.StreamEnded() || len(f.Data()) > 0 {
			c.t.Errorf("data %q, ended %v, want the end", f.Data(), f.StreamEnded())
		}
	case *http2.MetaHeadersFrame:
		if !f.StreamEnded() {
			c.t.Errorf("frame %v, want the end", f)
		}
	default:
		c.t.Errorf("frame %v, want the end", f)
	}
}

// serveH2 serves h without TLS, in both protocols.
func serveH2(t *testing.T, h http.Handler, change ...func(*http.Server)) (addr string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = wiretest.Quiet()
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	for _, f := range change {
		f(s.Config)
	}
	wiretest.Start(s)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func toTarget(t *testing.T, o wsupgrade.Options, target string) http.Handler {
	return forwarder(t, o).Handler(&url.URL{Scheme: "http", Host: target})
}

// respondToHandshake responds to a handshake as a target must.
func respondToHandshake(p *wiretest.Peer, lines ...string) (header string) {
	header = p.Header()
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(header)))
	if err != nil {
		return header
	}
	p.Send(with(strings.Replace(switching, accept, wsupgrade.AcceptFor(r.Header.Get("Sec-WebSocket-Key")), 1), lines...))
	return header
}

// A browser's WebSocket over HTTP/2 reaches a target that speaks HTTP/1.1, with its
// subprotocol, extensions and close codes; the end of either side is passed on.
func TestExtendedConnect(t *testing.T) {
	leaktest.Check(t)
	headers := make(chan string, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		headers <- respondToHandshake(p, "Sec-WebSocket-Protocol: chat", "Sec-WebSocket-Extensions: permessage-deflate", "X-Hop: 1", "Keep-Alive: 5")
		p.Send(frame(text, "first"))
		p.Receive(masked(text, "hello"))
		p.Send(frame(text, "world"))
		p.Receive(masked(closing, "\x03\xe8"))
		p.Send(frame(closing, "\x03\xe8"))
	})
	c := dialH2(t, serveH2(t, toTarget(t, wsupgrade.Options{}, target)))
	if !c.connect {
		t.Fatal("the server advertises no extended CONNECT")
	}
	id := c.open(false, extendedConnect("/chat?x=%zz", "origin http://culvert.test", "sec-websocket-protocol other, chat", "sec-websocket-extensions permessage-deflate", "cookie a=b")...)
	status, fields := c.status(id)
	if status != "200" || fields.Get("Sec-Websocket-Protocol") != "chat" || fields.Get("Sec-Websocket-Extensions") != "permessage-deflate" {
		t.Errorf("header %s %v", status, fields)
	}
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Accept", "Keep-Alive"} {
		if fields.Get(name) != "" {
			t.Errorf("%s: %s", name, fields.Get(name))
		}
	}
	header := wiretest.Await(t, headers, "handshake")
	for _, want := range []string{"GET /chat?x=%zz HTTP/1.1\r\n", "Host: culvert.test\r\n", "Connection: Upgrade\r\n", "Upgrade: websocket\r\n", "Sec-Websocket-Key: ",
		"Sec-Websocket-Version: 13\r\n", "Origin: http://culvert.test\r\n", "Sec-Websocket-Protocol: other, chat\r\n", "Cookie: a=b\r\n", "X-Forwarded-Proto: http\r\n"} {
		if !strings.Contains(header, want) {
			t.Errorf("no %q in %q", want, header)
		}
	}
	if strings.Contains(strings.ToLower(header), "protocol: websocket") || strings.Contains(header, "Content-Length") || strings.Contains(header, "Transfer-Encoding") {
		t.Errorf("header %q", header)
	}
	if got := c.data(id, 7); got != frame(text, "first") {
		t.Errorf("got %q", got)
	}
	c.check(c.WriteData(id, false, []byte(masked(text, "hello"))))
	if got := c.data(id, 7); got != frame(text, "world") {
		t.Errorf("got %q", got)
	}
	c.check(c.WriteData(id, false, []byte(masked(closing, "\x03\xe8"))))
	if got := c.data(id, 4); got != frame(closing, "\x03\xe8") {
		t.Errorf("got %q", got)
	}
	c.ended(id)
}

// END_STREAM of the client is a half-close: the target's last bytes are delivered.
func TestExtendedConnectHalfCloses(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		respondToHandshake(p)
		got := p.Rest()
		p.Send("heard " + got)
	})
	c := dialH2(t, serveH2(t, toTarget(t, wsupgrade.Options{}, target)))
	id := c.open(false, extendedConnect("/")...)
	c.status(id)
	c.check(c.WriteData(id, true, []byte("last words")))
	if got := c.data(id, 16); got != "heard last words" {
		t.Errorf("got %q", got)
	}
	c.ended(id)
}

// A client that resets its stream ends the tunnel, and the connection continues.
func TestExtendedConnectReset(t *testing.T) {
	leaktest.Check(t)
	ended := make(chan string, 2)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		respondToHandshake(p)
		ended <- p.Ended()
	})
	c := dialH2(t, serveH2(t, toTarget(t, wsupgrade.Options{}, target)))
	for range 2 {
		id := c.open(false, extendedConnect("/")...)
		if status, _ := c.status(id); status != "200" {
			t.Errorf("status %s", status)
		}
		c.check(c.WriteRSTStream(id, http2.ErrCodeCancel))
		wiretest.Await(t, ended, "end at the target")
	}
}

// A handshake that must not reach the target is refused (RFC 8441, RFC 6455 section 4.2).
func TestExtendedConnectIsRefused(t *testing.T) {
	leaktest.Check(t)
	dialled := make(chan string, 16)
	target := wiretest.Target(t, func(p *wiretest.Peer) { dialled <- p.Ended() })
	c := dialH2(t, serveH2(t, toTarget(t, wsupgrade.Options{}, target)))
	instead := func(of, with string) []string {
		lines := extendedConnect("/")
		for i, line := range lines {
			if line == of {
				lines[i] = with
			}
		}
		return lines
	}
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"GET":              {instead(":method CONNECT", ":method GET"), "400"},
		"unknown protocol": {instead(":protocol websocket", ":protocol connect-udp"), "501"},
		"h2c":              {instead(":protocol websocket", ":protocol h2c"), "501"},
		"no version":       {instead("sec-websocket-version 13", "x-other 13"), "400"},
		"old version":      {instead("sec-websocket-version 13", "sec-websocket-version 8"), "426"},
		"foreign origin":   {extendedConnect("/", "origin https://evil.test"), "403"},
		"null origin":      {extendedConnect("/", "origin null"), "403"},
		"asterisk":         {instead(":path /", ":path *"), "400"},
		"content length":   {extendedConnect("/", "content-length 5"), "400"},
	} {
		id := c.open(false, test.lines...)
		status, fields := c.status(id)
		if status != test.want {
			t.Errorf("%s: status %s, want %s", name, status, test.want)
		}
		if fields["Upgrade"] != nil || fields["Connection"] != nil || (status == "426") != (fields.Get("Sec-Websocket-Version") == "13") {
			t.Errorf("%s: fields %v", name, fields)
		}
	}
	if len(dialled) != 0 {
		t.Error("the target was dialled")
	}
}

// A response other than a 101 is passed on to the client unchanged.
func TestExtendedConnectOtherResponse(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Replying(t, "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno")
	c := dialH2(t, serveH2(t, toTarget(t, wsupgrade.Options{}, target)))
	id := c.open(false, extendedConnect("/")...)
	if status, fields := c.status(id); status != "401" || fields.Get("Www-Authenticate") != "Basic" {
		t.Errorf("response %s %v", status, fields)
	}
	if got := c.data(id, 2); got != "no" {
		t.Errorf("body %q", got)
	}
}

// A 2xx would open the client's tunnel (RFC 9110 section 9.3.6), though the target has not switched: the client would
// take a page for frames. The target did nothing wrong.
func TestExtendedConnectWhereNothingSwitches(t *testing.T) {
	leaktest.Check(t)
	for _, response := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
		"HTTP/1.1 204 No Content\r\n\r\n",
	} {
		target := wiretest.Replying(t, response)
		failed := make(chan *culvert.Error, 1)
		c := dialH2(t, serveH2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f, err := wsupgrade.New(wsupgrade.Options{Registry: registry(t, wsupgrade.RegistryOptions{})})
			if err != nil {
				t.Error(err)
				return
			}
			out := r.Clone(r.Context())
			out.URL.Scheme, out.URL.Host = "http", target
			_, err = f.Forward(w, r, out)
			var e *culvert.Error
			errors.As(err, &e)
			failed <- e
			if e != nil {
				wsupgrade.Refuse(w, e)
			}
		})))
		id := c.open(false, extendedConnect("/")...)
		if status, fields := c.status(id); status != "501" {
			t.Errorf("the client got %s %v", status, fields)
		}
		if e := wiretest.Await(t, failed, "error"); e == nil || e.TargetSide() || e.HeaderSent || !e.BytesSent {
			t.Errorf("error %#v", e)
		}
	}
}

// The exchange of a client that does not accept the response of a target that refuses is aborted:
// otherwise it would hold the target's connection for ever.
func TestRefusalIsNotAccepted(t *testing.T) {
	leaktest.Check(t)
	refusing := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		for _, err := p.Conn.Write([]byte("HTTP/1.1 401 Unauthorized\r\nContent-Length: 1000000000\r\n\r\n")); err == nil; {
			_, err = p.Conn.Write(make([]byte, 1<<16))
		}
	})
	ended := make(chan struct{}, 2)
	h := toTarget(t, wsupgrade.Options{HandshakeTimeout: 200 * time.Millisecond}, refusing)
	addr := serveH2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended <- struct{}{} }()
		h.ServeHTTP(w, r)
	}))
	dialH2(t, addr).open(false, extendedConnect("/")...)
	client := wiretest.Dial(t, addr)
	client.Send(with(handshake))
	for range 2 {
		wiretest.Await(t, ended, "end of both exchanges, over HTTP/2 and over HTTP/1.1")
	}
}

// A tunnel that is not read does not hold up another of the same connection if the server's buffers
// are set as the documentation says; nor do the server's timeouts end one.
func TestExtendedConnectStalls(t *testing.T) {
	leaktest.Check(t)
	release := make(chan struct{})
	defer close(release) // also if the test fails: the target's end is waited for
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		if header := respondToHandshake(p); strings.HasPrefix(header, "GET /stalled ") {
			<-release
			return
		}
		_, _ = io.Copy(struct{ io.Writer }{p.Conn}, p.R)
	})
	c := dialH2(t, serveH2(t, toTarget(t, wsupgrade.Options{}, target), func(s *http.Server) {
		s.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
		s.WriteTimeout, s.ReadTimeout = time.Second, time.Second
	}))
	stalled := c.open(false, extendedConnect("/stalled")...)
	c.status(stalled)
	live := c.open(false, extendedConnect("/live")...)
	c.status(live)
	for range 64 << 10 / 16384 { // as much as the stream's window holds
		c.check(c.WriteData(stalled, false, make([]byte, 16384)))
	}
	message := strings.Repeat("x", 10000)
	for i := range 200 { // more than a connection's window
		if i == 100 {
			time.Sleep(1100 * time.Millisecond) // the server's timeouts pass
		}
		c.check(c.WriteData(live, false, []byte(message)))
		if got := c.data(live, len(message)); got != message {
			t.Fatalf("message %d: %d bytes", i, len(got))
		}
		c.check(c.WriteWindowUpdate(0, uint32(len(message))))
		c.check(c.WriteWindowUpdate(live, uint32(len(message))))
	}
	c.check(c.WriteRSTStream(stalled, http2.ErrCodeCancel))
	c.check(c.WriteData(live, true, nil))
	c.ended(live)
}

// A browser that is far away, or busy, may be slow to respond to a Close frame: its stream is not
// reset meanwhile.
func TestExtendedConnectRespondsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientConn, serverConn := wstest.Pipe()
		targetConn, targetSide := wstest.Pipe()
		r := registry(t, wsupgrade.RegistryOptions{})
		o := wsupgrade.Options{Registry: r, Dial: func(context.Context, string, string) (net.Conn, error) { return targetSide, nil }}
		s := wiretest.Server(&http.Server{Handler: toTarget(t, o, "target.test"), Protocols: new(http.Protocols), ErrorLog: wiretest.Quiet()})
		s.Protocols.SetUnencryptedHTTP2(true)
		go func() { _ = s.Serve(wiretest.OneConn(serverConn)) }()
		go func() {
			p := wiretest.NewPeer(t, targetConn)
			respondToHandshake(p)
			wantClose(t, p.R, 1001, "", true)
			p.Send(frame(closing, "\x03\xe9"))
		}()
		c := newH2Client(t, clientConn)
		id := c.open(false, extendedConnect("/")...)
		c.status(id)
		synctest.Wait()
		go func() { _ = r.Drain(t.Context(), wsupgrade.GoingAway) }()
		if got := c.data(id, 4); got != frame(closing, "\x03\xe9") {
			t.Errorf("got %q", got)
		}
		time.Sleep(3 * time.Second)
		c.check(c.WriteData(id, false, []byte(masked(closing, "\x03\xe9"))))
		c.ended(id)
		clientConn.Close()
		targetConn.Close()
		_ = s.Close()
		synctest.Wait()
	})
}

// A drain closes a WebSocket over HTTP/2 like any other.
func TestExtendedConnectDrains(t *testing.T) {
	leaktest.Check(t)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		respondToHandshake(p)
		wantClose(t, p.R, 1001, "", true)
		p.Send(frame(closing, "\x03\xe9"))
	})
	r := registry(t, wsupgrade.RegistryOptions{})
	c := dialH2(t, serveH2(t, toTarget(t, wsupgrade.Options{Registry: r}, target)))
	id := c.open(false, extendedConnect("/")...)
	c.status(id)
	drained := make(chan error, 1)
	go func() { drained <- r.Drain(t.Context(), wsupgrade.GoingAway) }()
	if got := c.data(id, 4); got != frame(closing, "\x03\xe9") {
		t.Errorf("got %q", got)
	}
	c.check(c.WriteData(id, false, []byte(masked(closing, "\x03\xe9"))))
	c.ended(id)
	if err := wiretest.Await(t, drained, "end of the drain"); err != nil {
		t.Error(err)
	}
}
