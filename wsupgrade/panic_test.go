package wsupgrade_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

type panickyReader struct{}

func (panickyReader) Read([]byte) (int, error) { panic("a bug") }

// If a user's function panics during a handshake, neither a connection nor the request is retained.
func TestPanicInAHandshake(t *testing.T) {
	for name, test := range map[string]struct {
		scheme string
		body   io.Reader
		dial   func()
	}{
		"Dial":                    {"http", nil, func() { panic("a bug") }},
		"a function of TLSConfig": {"https", nil, func() {}},
		"the body is a filter's":  {"http", panickyReader{}, func() {}},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.Config.ErrorLog = wiretest.Quiet()
			if test.scheme == "https" {
				wiretest.StartTLS(s)
			} else {
				wiretest.Start(s)
			}
			defer s.Close()
			var open atomic.Int64
			f, err := wsupgrade.New(wsupgrade.Options{
				Protocols: []string{"tcp"},
				Registry:  registry(t, wsupgrade.RegistryOptions{}),
				TLSConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { panic("a bug") }},
				Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
					test.dial()
					c, err := new(net.Dialer).DialContext(ctx, network, addr)
					open.Add(1)
					return wiretest.Counted(c, &open), err
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			held := panics(t, f, test.scheme+"://"+s.Listener.Addr().String(), test.body)
			if n := open.Load(); n != 0 {
				t.Errorf("%d connections are open", n)
			}
			for end := time.Now().Add(20 * time.Second); held.Value() != nil; runtime.GC() {
				if time.Now().After(end) {
					t.Fatal("the request is still held")
				}
			}
			runtime.KeepAlive(f)
		})
	}
}

// panics forwards an upgrade that panics, and returns a pointer to a value of its context.
func panics(t *testing.T, f *wsupgrade.Forwarder, target string, body io.Reader) (held weak.Pointer[[100]byte]) {
	t.Helper()
	type key struct{}
	value := new([100]byte)
	held = weak.Make(value)
	in := httptest.NewRequest(http.MethodPost, "/", body).WithContext(context.WithValue(context.Background(), key{}, value))
	in.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"tcp"}}
	out := in.Clone(in.Context())
	out.URL.Scheme, out.URL.Host, _ = strings.Cut(target, "://")
	defer func() {
		if v := recover(); v != "a bug" {
			t.Errorf("a panic with %v", v)
		}
	}()
	_, err := f.Forward(httptest.NewRecorder(), in, out)
	t.Error(err)
	return held
}

// A Dial that panics for a CONNECT releases its admission: otherwise a drain would wait for it
// without end.
func TestPanicInAConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, wsupgrade.RegistryOptions{Max: 1})
		h := connecting(t, "192.0.2.1:1", wsupgrade.Options{Registry: r, Dial: func(context.Context, string, string) (net.Conn, error) { panic("a bug") }})
		for range 2 {
			func() {
				defer func() {
					if v := recover(); v != "a bug" {
						t.Errorf("a panic with %v", v)
					}
				}()
				h.ServeHTTP(httptest.NewRecorder(), connectRequest())
			}()
		}
		if err := r.Drain(context.Background(), wsupgrade.GoingAway); err != nil {
			t.Error(err)
		}
	})
}

// A drain cuts a CONNECT whose target is being dialled, as it cuts other handshakes.
func TestDrainCutsAConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, wsupgrade.RegistryOptions{})
		h := connecting(t, "192.0.2.1:1", wsupgrade.Options{Registry: r, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		w := httptest.NewRecorder()
		go h.ServeHTTP(w, connectRequest())
		synctest.Wait()
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Drain(ctx, wsupgrade.GoingAway); err != context.DeadlineExceeded {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the drain took %v", took)
		}
		if synctest.Wait(); w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d", w.Code)
		}
	})
}

func connectRequest() *http.Request {
	r := httptest.NewRequest(http.MethodConnect, "/", nil)
	r.Host, r.ContentLength = "db:5432", 0
	return r
}

// An argument that must not be nil causes a panic that says so.
func TestNilArguments(t *testing.T) {
	for want, call := range map[string]func(){
		"wsupgrade: Handler: nil target": func() { forwarder(t, wsupgrade.Options{}).Handler(nil) },
		"wsupgrade: Refuse: nil Error":   func() { wsupgrade.Refuse(httptest.NewRecorder(), nil) },
	} {
		func() {
			defer func() {
				if v := recover(); v != want {
					t.Errorf("a panic with %v, want %s", v, want)
				}
			}()
			call()
		}()
	}
}
