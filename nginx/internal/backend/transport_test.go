package backend_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/backend"
	"github.com/culvert-go/culvert/nginx/internal/cgi"
)

// header is a protocol of a word in front of the content of a request, and one of a response.
type header struct{}

func (header) Prepare(r *http.Request) (func(*bufio.Writer) error, error) {
	return func(w *bufio.Writer) error {
		w.WriteString("request ")
		return cgi.CopyBody(w, r)
	}, nil
}

func (header) ReadResponse(b *bufio.Reader, _ *http.Request) (*http.Response, func() bool, error) {
	_, err := b.ReadString('.')
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, func() bool { return false }, err
}

// slow is a body that takes a while to read.
type slow struct {
	*strings.Reader
	received bool
}

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return s.Reader.Read(p)
}
func (s slow) Ready() bool    { return s.received }
func (s slow) Received() bool { return s.received }
func (s slow) Close() error   { return nil }

// What precedes a body is sent with it if that is there, however long the machine takes to read it, and else before it.
func TestReceivedBodyIsOneWrite(t *testing.T) {
	for received, want := range map[bool]string{true: "request body", false: "request "} {
		synctest.Test(t, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			first := make(chan string, 1)
			go func() {
				buf := make([]byte, 100)
				n, _ := theirs.Read(buf)
				first <- string(buf[:n])
				go io.Copy(io.Discard, theirs)
				io.WriteString(theirs, "response.")
			}()
			transport := backend.New(backend.Options{Protocol: header{}, Dial: func(context.Context, string) (net.Conn, error) { return ours, nil }})
			r, err := http.NewRequest("POST", "http://backend/", slow{strings.NewReader("body"), received})
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if got := <-first; got != want {
				t.Errorf("received %v: the first write is %q, want %q", received, got, want)
			}
			resp.Body.Close()
			time.Sleep(time.Minute) // of the bubble: the body was read
		})
	}
}

// ReadTimeout bounds a header as a whole, whose bytes do not renew it.
func TestReadTimeoutOfHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		go func() {
			defer theirs.Close()
			for range 10 {
				if _, err := io.WriteString(theirs, "x"); err != nil { // and never the dot that ends it
					return
				}
				time.Sleep(time.Second)
			}
		}()
		transport := backend.New(backend.Options{Protocol: header{}, ReadTimeout: 3500 * time.Millisecond,
			Dial: func(context.Context, string) (net.Conn, error) { return ours, nil }})
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://backend/", nil)
		if err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		_, err = transport.RoundTrip(r)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(before) != 3500*time.Millisecond {
			t.Errorf("the error is %v, after %v", err, time.Since(before))
		}
		time.Sleep(time.Minute) // of the bubble: the backend has ended
	})
}
