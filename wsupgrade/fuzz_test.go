package wsupgrade_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/wsupgrade"
)

// FuzzResponse: for any bytes of a target's response to a handshake, the client gets either a 101
// that fits its key, and then the bytes after it, or one final response without any trace of a
// switch.
func FuzzResponse(f *testing.F) {
	for _, response := range []string{
		switching + "early", "", "HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\n" + switching,
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
		"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
		without(switching, "Connection"), with(switching, "Sec-WebSocket-Protocol: chat"), "\x16\x03\x01",
	} {
		f.Add(response)
	}
	f.Fuzz(func(t *testing.T, response string) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			gateway, target := net.Pipe()
			go func() {
				defer target.Close()
				if _, err := http.ReadRequest(bufio.NewReader(target)); err == nil {
					_, _ = io.WriteString(target, response)
				}
			}()
			return gateway, nil
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(handshake)))
		if err != nil {
			t.Fatal(err)
		}
		w := newTakenOver()
		status, err := forwarder(t, wsupgrade.Options{Dial: dial}).Forward(w, r, outboundTo(r, "target.test:80"))
		got := w.end()
		e := asError(err)
		switched := status == 101 && (e == nil || e.HeaderSent)
		switch {
		case switched && (!strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.Contains(got, "\r\nSec-Websocket-Accept: "+accept+"\r\n")):
			t.Errorf("switched with %q", got)
		case !switched && got != "":
			t.Errorf("status %d, and the client's connection got %q", status, got)
		case !switched && e == nil && (w.Code != status || status < 200 || status > 999):
			t.Errorf("status %d, the client got %d", status, w.Code)
		case e != nil && !e.HeaderSent && len(w.Header()) != 0:
			t.Errorf("failed, and left %v for the refusal", w.Header())
		}
	})
}

// takenOver is a ResponseWriter whose client has a connection in memory, and has
// closed its sending half already.
type takenOver struct {
	*httptest.ResponseRecorder
	server, client net.Conn
	got            chan string
}

func newTakenOver() *takenOver {
	w := &takenOver{ResponseRecorder: httptest.NewRecorder(), got: make(chan string, 1)}
	w.server, w.client = net.Pipe()
	go func() {
		got, _ := io.ReadAll(w.client)
		w.got <- string(got)
	}()
	return w
}

func (w *takenOver) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn := ended{w.server}
	return conn, bufio.NewReadWriter(bufio.NewReader(conn), bufio.NewWriter(conn)), nil
}

// end returns what was written to the client's connection.
func (w *takenOver) end() string {
	w.server.Close()
	return <-w.got
}

// ended is a connection whose other end sends nothing more.
type ended struct{ net.Conn }

func (ended) Read([]byte) (int, error) { return 0, io.EOF }

// FuzzFrames: frames without an Observer are passed on byte for byte, in pieces of any size, but
// for the Pong to our ping. An Observer passes on whole frames, which a second Observer passes on
// as well.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(masked(0x01, "a")+masked(0x89, "")+masked(0x80, "b")+masked(closing, "\x03\xe8")), uint8(3))
	f.Add([]byte(masked(pong, "12345678")+masked(pong, "12345679")), uint8(1))
	f.Add([]byte("\xc1\x87\x00\x00\x00\x00\xf2\x48\xcd\xc9\xc9\x07\x00"), uint8(2))
	f.Add([]byte("\x82\xff\x00\x00\x00\x00\x00\x00\x00\x05\x01\x02\x03\x04hello"), uint8(4))
	f.Add([]byte("\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff"), uint8(9))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		var pieces [][]byte
		for rest := bytes.Clone(stream); len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			pieces = append(pieces, rest[:n:n])
			rest = rest[n:]
		}
		passed, err := wsupgrade.PassFrames(pieces, nil)
		if err != nil || !bytes.Equal(passed, stream) {
			t.Fatalf("%x became %x: %v", stream, passed, err)
		}
		if kept := wsupgrade.ExpectPong(pieces, []byte("12345678")); !pongs(len(stream) - len(kept)) {
			t.Fatalf("%x became %x", stream, kept)
		}
		o := &wsupgrade.Observer{Message: func(*wsupgrade.Message) error { return nil }, MaxMessage: 4096, Inflate: true}
		once, err := wsupgrade.PassFrames(pieces, o)
		if err == nil || len(once) > 0 {
			if _, err := wsupgrade.PassFrames([][]byte{once}, o); err != nil {
				t.Fatalf("%x became %x, which is refused: %v", stream, once, err)
			}
		}
	})
}

// pongs reports whether n bytes can be Pongs to pings of eight bytes, masked or not.
func pongs(n int) bool {
	return n == 0 || n >= 10 && (pongs(n-10) || n >= 14 && pongs(n-14))
}
