package response_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/response"
)

// received is the content of a response that fails once it is longer than max.
type received struct {
	bytes.Buffer
	max    int
	closed error
}

var errTooLong = errors.New("too long")

func (c *received) Write(p []byte) (int, error) {
	if c.Len()+len(p) > c.max {
		return 0, errTooLong
	}
	return c.Buffer.Write(p)
}

func (c *received) Close() error { return c.closed }

func TestReceiver(t *testing.T) {
	errRefused, errShort := errors.New("refused"), errors.New("short")
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		closed  error // what Close of the content returns
		status  int
		content string
		cancels int
		want    error
	}{
		{"nothing is written", func(http.ResponseWriter, *http.Request) {}, nil, 200, "", 0, nil},
		{"interim responses", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(404) }, nil, 404, "", 0, nil},
		{"content", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ab")
			w.WriteHeader(404)
			_, _ = io.WriteString(w, "cd")
		}, nil, 200, "abcd", 0, nil},
		{"a flush", func(w http.ResponseWriter, _ *http.Request) {
			if http.NewResponseController(w).Flush() != nil {
				panic("no flush")
			}
			w.WriteHeader(404)
		}, nil, 200, "", 0, nil},
		{"a header that is refused", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			if _, err := io.WriteString(w, "ab"); !errors.As(err, new(*response.TransformError)) || !errors.Is(err, errRefused) {
				panic(err)
			}
		}, nil, 503, "", 1, errRefused},
		{"too much content", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "abcd")
			for range 2 {
				if _, err := io.WriteString(w, "e"); !errors.As(err, new(*response.TransformError)) || !errors.Is(err, errTooLong) {
					panic(err)
				}
			}
		}, nil, 200, "abcd", 1, errTooLong},
		{"content that is not whole", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ab") }, errShort, 200, "ab", 0, errShort},
	} {
		t.Run(test.name, func(t *testing.T) {
			content, status, cancels := &received{max: 4, closed: test.closed}, 0, 0
			w := response.NewReceiver(func(s int, _ http.Header) (io.WriteCloser, error) {
				if status = s; s == 503 {
					return nil, errRefused
				}
				return content, nil
			}, func() { cancels++ })
			test.handler(w, nil)
			if err := w.Close(); err != test.want || status != test.status || content.String() != test.content || cancels != test.cancels {
				t.Errorf("error %v, status %d, content %q, cancelled %d times; want %v, %d, %q, %d",
					err, status, content.String(), cancels, test.want, test.status, test.content, test.cancels)
			}
		})
	}
}

// A panic at the header ends the handler. If that recovers from it, the response has failed.
func TestReceiverPanic(t *testing.T) {
	w := response.NewReceiver(func(int, http.Header) (io.WriteCloser, error) { panic("a bug") }, func() {})
	func() {
		defer func() {
			if recover() != "a bug" {
				t.Error("no panic")
			}
		}()
		w.WriteHeader(http.StatusOK)
	}()
	if _, err := io.WriteString(w, "ab"); err == nil || w.Err() == nil || w.Close() == nil {
		t.Error("no error")
	}
}
