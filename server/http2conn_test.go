package server

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// rawHTTP2 is a client of HTTP/2 that sends what it likes.
type rawHTTP2 struct {
	*http2.Framer
	t       testing.TB
	conn    net.Conn
	block   writerOf
	encoder *hpack.Encoder
	decoder *hpack.Decoder
	fields  string // of the last header section that was decoded
}

// dialRawHTTP2 begins a connection to a server of HTTP/2, over TLS or in the clear.
func dialRawHTTP2(t testing.TB, addr string, secure bool, settings ...http2.Setting) *rawHTTP2 {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if secure {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c := &rawHTTP2{t: t, conn: conn, Framer: http2.NewFramer(conn, conn)}
	c.SetMaxReadFrameSize(1 << 20)
	c.encoder = hpack.NewEncoder(&c.block)
	c.decoder = hpack.NewDecoder(4096, func(f hpack.HeaderField) { c.fields += f.Name + ": " + f.Value + "\n" })
	if err := c.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return c
}

// request begins a stream with GET /path, and with these fields, as "name: value".
func (c *rawHTTP2) request(stream uint32, path string, end bool, fields ...string) {
	c.t.Helper()
	c.block = nil
	for _, field := range append([]string{":method: GET", ":scheme: http", ":authority: a", ":path: " + path}, fields...) {
		at := strings.Index(field[1:], ": ") + 1
		_ = c.encoder.WriteField(hpack.HeaderField{Name: field[:at], Value: field[at+2:]})
	}
	if err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.block, EndStream: end, EndHeaders: true}); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next frame that is of a stream, or ends the connection, in a line.
func (c *rawHTTP2) next() string {
	c.t.Helper()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return err.Error()
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			return c.section(f.HeaderBlockFragment(), fmt.Sprintf("HEADERS %d end %t", f.StreamID, f.StreamEnded()), f.HeadersEnded())
		case *http2.ContinuationFrame:
			return c.section(f.HeaderBlockFragment(), fmt.Sprintf("CONTINUATION %d", f.StreamID), f.HeadersEnded())
		case *http2.DataFrame:
			return fmt.Sprintf("DATA %d end %t %d bytes", f.StreamID, f.StreamEnded(), len(f.Data()))
		case *http2.RSTStreamFrame:
			return fmt.Sprintf("RST_STREAM %d %v", f.StreamID, f.ErrCode)
		case *http2.GoAwayFrame:
			return fmt.Sprintf("GOAWAY %v", f.ErrCode)
		}
	}
}

// section decodes a part of a header section, and completes the line of its frame.
func (c *rawHTTP2) section(block []byte, line string, ended bool) string {
	if _, err := c.decoder.Write(block); err != nil {
		return err.Error()
	}
	if !ended {
		return line + " not ended"
	}
	if err := c.decoder.Close(); err != nil {
		return err.Error()
	}
	status, _, _ := strings.Cut(c.fields, "\n")
	c.fields = ""
	return line + " " + status
}

// want checks the next frame.
func (c *rawHTTP2) want(line string) {
	c.t.Helper()
	if got := c.next(); got != line {
		c.t.Fatalf("%q, want %q", got, line)
	}
}

// serveHTTP2 serves HTTP/2 over TLS or in the clear until the test ends.
func serveHTTP2(t *testing.T, secure bool, h http.HandlerFunc) (addr string) {
	t.Helper()
	s := handler(h)
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP2(secure)
	s.Protocols.SetUnencryptedHTTP2(!secure)
	if secure {
		return startTLS(t, s)
	}
	return start(t, s)
}

// A malformed request gets a 400. Its stream is reset if the client has not ended its side. The others of its connection are
// served, if it is not followed by content.
func TestMalformedHTTP2(t *testing.T) {
	for _, secure := range []bool{true, false} {
		addr := serveHTTP2(t, secure, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/begun" {
				w.WriteHeader(http.StatusAccepted)
				_ = http.NewResponseController(w).Flush()
			}
			if r.ContentLength > 0 {
				_, _ = io.Copy(io.Discard, r.Body)
			}
		})
		c := dialRawHTTP2(t, addr, secure)
		stream := uint32(1)
		for _, field := range []string{"A: upper case", "a b: blank", "a: line\r\nbreak", ":authority: again", "host: other\x02"} {
			c.request(stream, "/", true, field)
			c.want(fmt.Sprintf("HEADERS %d end true :status: 400", stream))
			c.request(stream+2, "/", true, "x-a: added to the table")
			c.want(fmt.Sprintf("HEADERS %d end true :status: 200", stream+2))
			stream += 4
		}
		c.request(stream, "/", false, "content-length: 2")
		_ = c.WriteData(stream, false, []byte("more than that"))
		c.want(fmt.Sprintf("HEADERS %d end true :status: 400", stream))
		c.want(fmt.Sprintf("RST_STREAM %d PROTOCOL_ERROR", stream))
		stream += 2
		c.request(stream, "/", false, "content-length: 2")
		_ = c.WriteData(stream, true, []byte("more than that"))
		c.want(fmt.Sprintf("HEADERS %d end true :status: 400", stream))
		stream += 2
		c.request(stream, "/begun", false, "content-length: 2")
		c.want(fmt.Sprintf("HEADERS %d end false :status: 202", stream))
		_ = c.WriteData(stream, false, []byte("more than that"))
		c.want(fmt.Sprintf("RST_STREAM %d PROTOCOL_ERROR", stream))
	}
}

// The reset of a stream for another reason, and of one of a client with a smaller table, whose size has to be in the next header
// section, is sent alone.
func TestResetAlone(t *testing.T) {
	addr := serveHTTP2(t, false, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	c := dialRawHTTP2(t, addr, false)
	c.request(1, "/", true)
	c.want("RST_STREAM 1 INTERNAL_ERROR")
	c = dialRawHTTP2(t, addr, false, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 100})
	c.request(1, "/", true, "A: upper case")
	c.want("RST_STREAM 1 PROTOCOL_ERROR")
}

// A change of a stream's window by nothing resets the stream; its request was not malformed.
func TestResetForWindow(t *testing.T) {
	addr := serveHTTP2(t, false, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	c := dialRawHTTP2(t, addr, false)
	c.request(1, "/", false)
	_, _ = c.conn.Write([]byte{0, 0, 4, byte(http2.FrameWindowUpdate), 0, 0, 0, 0, 1, 0, 0, 0, 0})
	c.want("RST_STREAM 1 PROTOCOL_ERROR")
	c.request(3, "/", false)
	_ = c.WriteWindowUpdate(3, 1)
	_ = c.WriteData(3, true, nil)
	c.want("HEADERS 3 end true :status: 200")
}

// A stream beyond those that the server accepts at a time is reset; its request was not malformed.
func TestResetForTooManyStreams(t *testing.T) {
	release := make(chan struct{})
	s := handler(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "a")
		if r.URL.Path == "/held" {
			<-release
		}
	})
	s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 2}
	s.Protocols = new(http.Protocols)
	s.Protocols.SetUnencryptedHTTP2(true)
	c := dialRawHTTP2(t, start(t, s), false)
	_ = c.WriteSettingsAck()
	for stream := uint32(1); stream < 11; stream += 2 {
		c.request(stream, "/", false)
		_ = c.WriteData(stream, true, nil)
		c.want(fmt.Sprintf("HEADERS %d end false :status: 200", stream))
		c.want(fmt.Sprintf("DATA %d end true 1 bytes", stream))
	}
	c.request(11, "/held", true)
	c.request(13, "/", true, "A: upper case")
	c.want("HEADERS 13 end true :status: 400")
	c.request(15, "/held", true)
	c.request(17, "/", true)
	c.want("RST_STREAM 17 PROTOCOL_ERROR")
	_ = c.WriteRSTStream(15, http2.ErrCodeCancel)
	c.request(19, "/", true, "A: upper case")
	c.want("HEADERS 19 end true :status: 400")
	close(release)
	c.want("HEADERS 11 end false :status: 200")
	c.want("DATA 11 end true 1 bytes")
}

// What is noted of a stream is forgotten with it, regardless of the side that ends it.
func TestHTTP2Forgets(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := newHTTP2Conn(far, true).(*http2Conn)
	var sent bytes.Buffer
	client := http2.NewFramer(&sent, nil)
	for stream := uint32(1); stream < 3*maxOpen; stream += 2 {
		_ = client.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndHeaders: true})
		_ = client.WriteRSTStream(stream, http2.ErrCodeCancel)
	}
	resets := sent.Len()
	for stream := uint32(3*maxOpen + 1); stream < 8*maxOpen; stream += 2 {
		_ = client.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndHeaders: true})
	}
	go func() {
		_, _ = near.Write(sent.Bytes())
		_ = near.Close()
	}()
	if _, err := io.ReadFull(c, make([]byte, resets)); err != nil || len(c.streams) != 0 {
		t.Errorf("%d streams, %v", len(c.streams), err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil || len(c.streams) != maxOpen {
		t.Errorf("%d streams, %v", len(c.streams), err)
	}
}

// A long header section, or one of trailers, is sent in frames as large as the client accepts.
func TestHeaderSectionFrames(t *testing.T) {
	value := strings.Repeat("\x7f~", 20000) // longer by Huffman's code
	addr := serveHTTP2(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("A", strings.ReplaceAll(value, "\x7f", "}"))
		_, _ = io.WriteString(w, "b")
		w.Header().Set(http.TrailerPrefix+"B", strings.ReplaceAll(value, "\x7f", "|"))
	})
	c := dialRawHTTP2(t, addr, false, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 17})
	for stream := uint32(1); stream < 9; stream += 2 {
		c.request(stream, "/", true)
		c.want(fmt.Sprintf("HEADERS %d end false :status: 200", stream))
		c.want(fmt.Sprintf("DATA %d end false 1 bytes", stream))
		c.want(fmt.Sprintf("HEADERS %d end true b: %s", stream, strings.ReplaceAll(value, "\x7f", "|")))
	}
	c = dialRawHTTP2(t, addr, false, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 30000})
	c.request(1, "/", true)
	c.want("HEADERS 1 end false not ended")
	c.want("CONTINUATION 1 :status: 200")
	c = dialRawHTTP2(t, addr, false)
	c.request(1, "/", true)
	c.want("HEADERS 1 end false not ended")
	c.want("CONTINUATION 1 not ended")
	c.want("CONTINUATION 1 :status: 200")
}

// The least size of a table in a frame counts: a header section begins with it.
func TestRepeatedTableSize(t *testing.T) {
	size := func(n uint32) http2.Setting { return http2.Setting{ID: http2.SettingHeaderTableSize, Val: n} }
	push := http2.Setting{ID: http2.SettingEnablePush, Val: 0}
	for _, settings := range [][]http2.Setting{
		{size(17), size(4096)}, {size(4096), size(17)}, {size(17), push, size(17), push}, {size(5000), size(17), size(20)},
	} {
		near, far := net.Pipe()
		go func() {
			_ = http2.NewFramer(near, nil).WriteSettings(settings...)
			_ = near.Close()
		}()
		f, err := http2.NewFramer(nil, newHTTP2Conn(far, true)).ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		kept := f.(*http2.SettingsFrame)
		if n, _ := kept.Value(http2.SettingHeaderTableSize); n != 17 || kept.HasDuplicates() {
			t.Errorf("%v: %v", settings, kept)
		}
	}
}

// The last value of another setting in a frame counts.
func TestRepeatedSetting(t *testing.T) {
	addr := serveHTTP2(t, false, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 20)) })
	window := func(n uint32) http2.Setting { return http2.Setting{ID: http2.SettingInitialWindowSize, Val: n} }
	c := dialRawHTTP2(t, addr, false, window(5), http2.Setting{ID: http2.SettingEnablePush, Val: 0}, window(7))
	c.request(1, "/", true)
	c.want("HEADERS 1 end false :status: 200")
	c.want("DATA 1 end false 7 bytes")
	_ = c.WriteSettings(window(9), window(20))
	c.want("DATA 1 end true 13 bytes")
}

// The header of a PUSH_PROMISE ends the connection.
func TestPushPromise(t *testing.T) {
	addr := serveHTTP2(t, false, func(http.ResponseWriter, *http.Request) {})
	c := dialRawHTTP2(t, addr, false)
	_, _ = c.conn.Write([]byte{0, 0, 4, byte(http2.FramePushPromise), 0, 0, 0, 0, 1})
	c.want("GOAWAY PROTOCOL_ERROR")
	followed := newHTTP2Conn(&receivedConn{received: []byte{0, 0, 4, byte(http2.FramePushPromise), 0, 0, 0, 0, 1}}, true)
	got, err := io.ReadAll(followed)
	wiretest.SameBytes(t, "read", got, []byte{0, 0, 0, byte(http2.FramePushPromise), 0, 0, 0, 0, 0})
	if err != nil {
		t.Error(err)
	}
}

// receivedConn is a connection of which this was received, and no more.
type receivedConn struct {
	net.Conn
	received []byte
}

func (c *receivedConn) Read(b []byte) (int, error) {
	n := copy(b, c.received)
	if c.received = c.received[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// slowConn accepts so many bytes of a write, and then reports that time is up.
type slowConn struct {
	net.Conn
	accepts int
	got     bytes.Buffer
}

func (c *slowConn) Write(b []byte) (int, error) {
	if len(b) <= c.accepts {
		return c.got.Write(b)
	}
	n, _ := c.got.Write(b[:c.accepts])
	return n, os.ErrDeadlineExceeded
}

// Frames are sent the same however they are written and accepted in pieces.
func TestHTTP2Pieces(t *testing.T) {
	var written bytes.Buffer
	f := http2.NewFramer(&written, nil)
	part := func(c byte) []byte { return bytes.Repeat([]byte{c}, defaultMaxFrame) }
	_ = f.WriteSettings()
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: part('a'), EndStream: true})
	_ = f.WriteContinuation(3, false, part('b'))
	_ = f.WriteContinuation(3, true, part('c')[:10])
	_ = f.WriteRSTStream(5, http2.ErrCodeProtocol)
	_ = f.WriteData(7, true, []byte("data"))
	_ = f.WriteRSTStream(3, http2.ErrCodeProtocol)
	_ = f.WriteRSTStream(9, http2.ErrCodeRefusedStream)
	var want bytes.Buffer
	f = http2.NewFramer(&want, nil)
	_ = f.WriteSettings()
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: append(part('a'), part('b')[:13616]...), EndStream: true})
	_ = f.WriteContinuation(3, true, append(part('b')[13616:], part('c')[:10]...))
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, BlockFragment: []byte(badRequest), EndStream: true, EndHeaders: true})
	_ = f.WriteRSTStream(5, http2.ErrCodeProtocol)
	_ = f.WriteData(7, true, []byte("data"))
	_ = f.WriteRSTStream(3, http2.ErrCodeProtocol)
	_ = f.WriteRSTStream(9, http2.ErrCodeRefusedStream)
	for _, piece := range []int{1, 2, 3, 7, 9, 10, 13, 4096, 1 << 20} {
		for _, accepts := range []int{1, 4, 9, 100, 1 << 20} {
			slow := &slowConn{accepts: accepts}
			c := newHTTP2Conn(slow, true).(*http2Conn)
			c.maxFrame.Store(30000)
			for stream := uint32(3); stream <= 9; stream += 2 {
				c.opened(stream)
			}
			for rest := written.Bytes(); len(rest) > 0; {
				n, err := c.Write(rest[:min(piece, len(rest))])
				rest = rest[n:]
				if err != nil && err != os.ErrDeadlineExceeded {
					t.Fatal(err)
				}
			}
			for c.sendMade() != nil {
			}
			wiretest.SameBytes(t, fmt.Sprintf("pieces of %d, of which %d are accepted", piece, accepts), slow.got.Bytes(), want.Bytes())
			if cap(c.partial) > maxKept {
				t.Errorf("%d bytes are kept", cap(c.partial))
			}
		}
	}
}

// A reset that the client's own one overtakes, while it is being written, is sent whole and alone.
func TestResetOvertaken(t *testing.T) {
	var written, want bytes.Buffer
	f := http2.NewFramer(&written, nil)
	_ = f.WriteRSTStream(1, http2.ErrCodeProtocol)
	_ = f.WriteRSTStream(3, http2.ErrCodeProtocol)
	f = http2.NewFramer(&want, nil)
	_ = f.WriteRSTStream(1, http2.ErrCodeProtocol)
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte(badRequest), EndStream: true, EndHeaders: true})
	_ = f.WriteRSTStream(3, http2.ErrCodeProtocol)
	for at := 1; at < frameHeaderLen+4; at++ { // what of the first was written by then
		slow := &slowConn{accepts: 1 << 20}
		c := newHTTP2Conn(slow, true).(*http2Conn)
		c.opened(1)
		c.opened(3)
		for _, piece := range [][]byte{written.Bytes()[:at], written.Bytes()[at:]} {
			if _, err := c.Write(piece); err != nil {
				t.Fatal(err)
			}
			c.takeStream(1)
		}
		wiretest.SameBytes(t, fmt.Sprintf("piece of %d", at), slow.got.Bytes(), want.Bytes())
	}
}
