package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// panickingCloser is a response's body that ends when it is closed, which panics.
type panickingCloser struct {
	closed chan struct{}
	once   sync.Once
}

func (b *panickingCloser) Read([]byte) (int, error) {
	<-b.closed
	return 0, errors.New("closed")
}

func (b *panickingCloser) Close() error {
	b.once.Do(func() {
		close(b.closed)
		panic("a transport's body")
	})
	return nil
}

// TestPanicOfATransportsBody: a panic of the Close of a transport's body, which is closed when the request's time ends, is the
// handler's, and does not end the program.
func TestPanicOfATransportsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 2, ContentLength: -1, Body: &panickingCloser{closed: make(chan struct{})}}, nil
		})
		group := groupAt(t, upstream.Options{}, "192.0.2.1:80")
		p := newProxy(t, anyPath, proxy.Options{Upstream: group, Transport: transport, Timeout: time.Second})
		body, send := io.Pipe()
		defer send.Close()
		var value any
		func() {
			defer func() { value = recover() }()
			p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://gateway.test/", body))
		}()
		if value != "a transport's body" {
			t.Errorf("the handler has panicked with %v", value)
		}
		_ = group.Close()
	})
}
