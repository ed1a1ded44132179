package wsupgrade_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/wsupgrade"
)

// FuzzAnswer: whatever bytes a target answers a handshake with, the client gets
// either a 101 that answers its key, and then the bytes behind it, or one final
// answer without any trace of a switch.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{
		switching + "early", "", "HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\n" + switching,
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
		"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
		without(switching, "Connection"), with(switching, "Sec-WebSocket-Protocol: chat"), "\x16\x03\x01",
	} {
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			gateway, target := net.Pipe()
			go func() {
				defer target.Close()
				if _, err := http.ReadRequest(bufio.NewReader(target)); err == nil {
					_, _ = io.WriteString(target, answer)
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
		switched := status == 101 && (e == nil || e.HeadSent)
		switch {
		case switched && (!strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.Contains(got, "\r\nSec-Websocket-Accept: "+accept+"\r\n")):
			t.Errorf("switched with %q", got)
		case !switched && got != "":
			t.Errorf("status %d, and the client's connection got %q", status, got)
		case !switched && e == nil && (w.Code != status || status < 200 || status > 999):
			t.Errorf("status %d, the client got %d", status, w.Code)
		case e != nil && !e.HeadSent && len(w.Header()) != 0:
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

// end returns what the client's connection got.
func (w *takenOver) end() string {
	w.server.Close()
	return <-w.got
}

// ended is a connection of which the other end says nothing more.
type ended struct{ net.Conn }

func (ended) Read([]byte) (int, error) { return 0, io.EOF }
