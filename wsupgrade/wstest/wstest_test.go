package wstest_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/wsupgrade"
	"github.com/culvert-go/culvert/wsupgrade/wstest"
)

// A gateway is tested in a bubble of time: its idle timeout of an hour passes at once.
func TestGatewayInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := wstest.NewTarget(func(conn *websocket.Conn) {
			for {
				kind, message, err := conn.ReadMessage()
				if err != nil || conn.WriteMessage(kind, append([]byte("echo "), message...)) != nil {
					return
				}
			}
		})
		defer target.Close()
		f, err := wsupgrade.New(wsupgrade.Options{Dial: target.Dial, IdleTimeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		gateway := wstest.Serve(f.Handler(target.URL()))
		defer gateway.Close()
		conn, _, err := gateway.Dial("/chat", http.Header{"Origin": {"http://gateway.test"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, message, err := conn.ReadMessage(); err != nil || string(message) != "echo hello" {
			t.Errorf("got %q: %v", message, err)
		}
		start := time.Now()
		if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) || time.Since(start) != time.Hour {
			t.Errorf("ended with %v after %v", err, time.Since(start))
		}
		conn.Close()
		synctest.Wait()
	})
}

// The gateway passes on the refusal of a target.
func TestRawTarget(t *testing.T) {
	leaktest.Check(t)
	target := wstest.NewRawTarget(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	f, err := wsupgrade.New(wsupgrade.Options{Dial: target.Dial})
	if err != nil {
		t.Fatal(err)
	}
	gateway := wstest.Serve(f.Handler(target.URL()))
	if _, resp, err := gateway.Dial("/", nil); err == nil || resp == nil || resp.StatusCode != 401 {
		t.Errorf("response %v: %v", resp, err)
	}
	target.Close()
	if _, resp, err := gateway.Dial("/", nil); err == nil || resp == nil || resp.StatusCode != 502 {
		t.Errorf("without a target: %v: %v", resp, err)
	}
	gateway.Close()
	if _, _, err := gateway.Dial("/", nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("without a gateway: %v", err)
	}
}

// The ends of a pipe behave like those of a socket.
func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := wstest.Pipe()
		large := bytes.Repeat([]byte("0123456789"), 20000)
		written := make(chan int, 1)
		go func() {
			n, _ := a.Write(large)
			written <- n
		}()
		synctest.Wait()
		if len(written) != 0 {
			t.Error("200 kB fit in the buffer")
		}
		got := make([]byte, len(large))
		if _, err := io.ReadFull(b, got); err != nil || !bytes.Equal(got, large) || <-written != len(large) {
			t.Errorf("read %d bytes: %v", len(got), err)
		}
		_ = b.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := b.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after a second: %v", err)
		}
		_ = b.SetReadDeadline(time.Time{})
		_, _ = a.Write([]byte("last"))
		_ = a.CloseWrite()
		if rest, err := io.ReadAll(b); string(rest) != "last" || err != nil {
			t.Errorf("rest %q: %v", rest, err)
		}
		if _, err := a.Write([]byte("x")); err == nil {
			t.Error("a half-closed end writes")
		}
		_, _ = b.Write([]byte("tail"))
		_ = b.Close()
		if tail, err := io.ReadAll(a); string(tail) != "tail" || err != nil {
			t.Errorf("tail %q: %v", tail, err)
		}
		if _, err := b.Read(got); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a closed end reads: %v", err)
		}
		_ = a.SetWriteDeadline(time.Now())
		c, d := wstest.Pipe()
		_ = d.Close()
		if _, err := c.Write(large); err == nil {
			t.Error("an end writes after the other has closed")
		}
	})
}
