package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	own "github.com/culvert-go/culvert/server"
)

// The tests of this file are those of server's contract with libraries that the root module does not depend on. Each
// runs with net/http's server and with package server.

// eachServer runs test with each of the servers: serve serves a handler over the protocols until the test ends.
func eachServer(t *testing.T, test func(t *testing.T, serve func(h http.Handler, protocols *http.Protocols) (addr string))) {
	type serving interface {
		Serve(net.Listener) error
		ServeTLS(l net.Listener, certFile, keyFile string) error
		Close() error
	}
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	certificates := httptest.NewUnstartedServer(nil)
	certificates.StartTLS()
	defer certificates.Close()
	config := &tls.Config{Certificates: certificates.TLS.Certificates}
	for name, build := range map[string]func(h http.Handler, p *http.Protocols) serving{
		"net/http": func(h http.Handler, p *http.Protocols) serving {
			return &http.Server{Handler: h, Protocols: p, TLSConfig: config, ErrorLog: quiet}
		},
		"server": func(h http.Handler, p *http.Protocols) serving {
			return &own.Server{Handler: h, Protocols: p, TLSConfig: config, ErrorLog: quiet}
		},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, func(h http.Handler, p *http.Protocols) string {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				s := build(h, p)
				var running sync.WaitGroup
				running.Go(func() {
					if p.HTTP2() {
						_ = s.ServeTLS(l, "", "")
						return
					}
					_ = s.Serve(l)
				})
				t.Cleanup(func() {
					s.Close()
					running.Wait()
				})
				return l.Addr().String()
			})
		})
	}
}

// chi's router and its middleware.
func TestContractChi(t *testing.T) {
	r := chi.NewRouter()
	r.Use(middleware.RequestID, middleware.CleanPath, middleware.Compress(5, "text/plain"), middleware.Timeout(time.Minute),
		middleware.RequestSize(100), middleware.Throttle(10))
	r.Route("/items/{id}", func(r chi.Router) {
		r.Get("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, chi.URLParam(r, "id")) })
		r.Post("/", func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
			_, _ = w.Write(body)
		})
	})
	r.Get("/wrapped", func(w http.ResponseWriter, r *http.Request) {
		wrapped := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		fmt.Fprint(wrapped, strings.Repeat("much ", 20_000))
		wrapped.(http.Flusher).Flush()
		if wrapped.Status() != http.StatusOK || wrapped.BytesWritten() != 100_000 {
			t.Errorf("wrapped: %d, %d bytes", wrapped.Status(), wrapped.BytesWritten())
		}
	})
	r.Mount("/debug", middleware.Profiler())
	eachServer(t, func(t *testing.T, serve func(http.Handler, *http.Protocols) string) {
		for _, p := range []*http.Protocols{only((*http.Protocols).SetHTTP1), only((*http.Protocols).SetHTTP2), only((*http.Protocols).SetUnencryptedHTTP2)} {
			client, url := clientOf(t, serve(r, p), p)
			for _, row := range []struct {
				method, path, body string
				status             int
				want               string
			}{
				{"GET", "/items/1/", "", 200, "1"}, {"GET", "//items//1/", "", 200, "1"}, {"POST", "/items/1/", "hello", 200, "hello"},
				{"POST", "/items/1/", strings.Repeat("much ", 100), 413, ""}, {"PUT", "/items/1/", "", 405, ""}, {"GET", "/none", "", 404, "404 page not found\n"},
				{"GET", "/wrapped", "", 200, strings.Repeat("much ", 20_000)}, {"GET", "/debug/vars", "", 200, "{"},
			} {
				req, err := http.NewRequest(row.method, url+row.path, strings.NewReader(row.body))
				if err != nil {
					t.Fatal(err)
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Errorf("%v: %s %s: %v", p, row.method, row.path, err)
					continue
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != row.status || !strings.HasPrefix(string(body), row.want) || err != nil {
					t.Errorf("%v: %s %s: %s %.100q, %v", p, row.method, row.path, resp.Status, body, err)
				}
			}
		}
	})
}

// only returns one protocol.
func only(set func(*http.Protocols, bool)) *http.Protocols {
	p := new(http.Protocols)
	set(p, true)
	return p
}

// clientOf returns a client that speaks one protocol to addr, and the URL there.
func clientOf(t *testing.T, addr string, p *http.Protocols) (client *http.Client, url string) {
	transport := &http.Transport{Protocols: p, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	scheme := "http://"
	if p.HTTP2() {
		scheme = "https://"
	}
	return &http.Client{Transport: transport, Timeout: time.Minute}, scheme + addr
}

// coder/websocket and gorilla/websocket accept WebSockets.
func TestContractWebSockets(t *testing.T) {
	eachServer(t, func(t *testing.T, serve func(http.Handler, *http.Protocols) string) {
		for serverName, h := range map[string]http.HandlerFunc{"coder": coderServer, "gorilla": gorillaServer} {
			url := "ws://" + serve(h, only((*http.Protocols).SetHTTP1))
			for clientName, client := range map[string]func(*testing.T, string) string{"coder": coderClient, "gorilla": gorillaClient} {
				if got := client(t, url); got != wsConversation {
					t.Errorf("%s to %s: the client saw\n%s\nwant\n%s", clientName, serverName, got, wsConversation)
				}
			}
		}
	})
}

// grpc-go's server is a handler, too.
func TestContractGRPC(t *testing.T) {
	program, err := peersProgram()
	if err != nil {
		t.Fatal(err)
	}
	eachServer(t, func(t *testing.T, serve func(http.Handler, *http.Protocols) string) {
		calls := grpc.NewServer()
		t.Cleanup(calls.Stop)
		testgrpc.RegisterTestServiceServer(calls, interop.NewTestServer())
		addr := serve(calls, only((*http.Protocols).SetUnencryptedHTTP2))
		for _, c := range []string{"empty_unary", "large_unary", "large_unary, gzip", "client_streaming", "server_streaming", "ping_pong", "empty_stream",
			"custom_metadata", "status_code_and_message", "special_status_message", "unimplemented_method", "unimplemented_service",
			"cancel_after_begin", "cancel_after_first_response", "timeout_on_sleeping_server"} {
			if out, err := exec.Command(program, "grpc-client", c, addr).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", c, err, out)
			}
		}
	})
}
