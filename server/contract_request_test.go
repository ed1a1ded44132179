package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// described is a request as a handler sees it, its body read: method, target, version, host, length, then the fields in
// brackets, the body in quotes, and what else there is.
func described(r *http.Request) string {
	announced := fields(r.Trailer)
	body, err := io.ReadAll(r.Body)
	s := fmt.Sprintf("%s %s %s %q %d [%s] %q", r.Method, r.RequestURI, r.Proto, r.Host, r.ContentLength, fields(r.Header), body)
	if len(r.TransferEncoding) > 0 {
		s += fmt.Sprint(" ", r.TransferEncoding)
	}
	if announced != "" || len(r.Trailer) > 0 {
		s += fmt.Sprintf(" announced [%s] trailers [%s]", announced, fields(r.Trailer))
	}
	if r.Close {
		s += " close"
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		s += " unexpected EOF"
	case err != nil:
		s += " error"
	}
	return s
}

// fields lists the fields of h by name.
func fields(h http.Header) string {
	var lines []string
	for name, values := range h {
		if len(values) == 0 {
			lines = append(lines, name)
		}
		for _, value := range values {
			lines = append(lines, name+": "+value)
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		nameA, _, _ := strings.Cut(a, ":")
		nameB, _, _ := strings.Cut(b, ":")
		return strings.Compare(nameA, nameB)
	})
	return strings.Join(lines, "|")
}

// requestRow is a request that a server hands to its handler.
type requestRow struct {
	name, request string
	want          string // as described
	closed        bool   // the server then closes the connection
}

var requestRows = []requestRow{
	{"no fields but Host", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", `GET / HTTP/1.1 "a" 0 [] ""`, false},
	{"keys in canonical form", "GET / HTTP/1.1\r\nhOST: a\r\nx-aB: 1\r\n\r\n", `GET / HTTP/1.1 "a" 0 [X-Ab: 1] ""`, false},
	{"a field twice, in order", "GET / HTTP/1.1\r\nHost: a\r\nX-A: 2\r\nx-a: 1\r\n\r\n", `GET / HTTP/1.1 "a" 0 [X-A: 2|X-A: 1] ""`, false},
	{"blanks around a value", "GET / HTTP/1.1\r\nHost: \t a \t\r\nX-A: \t a b \t\r\nX-B:1\r\nX-C:\r\n\r\n",
		`GET / HTTP/1.1 "a" 0 [X-A: a b|X-B: 1|X-C: ] ""`, false},
	{"bytes above 127 in a value", "GET / HTTP/1.1\r\nHost: a\r\nX-A: \xff\xc3\xa4\r\n\r\n", "GET / HTTP/1.1 \"a\" 0 [X-A: \xff\xc3\xa4] \"\"", false},
	{"odd names that are tokens", "GET / HTTP/1.1\r\nHost: a\r\nx!#$%&'*+-.^_`|~9: 1\r\n\r\n", "GET / HTTP/1.1 \"a\" 0 [X!#$%&'*+-.^_`|~9: 1] \"\"", false},
	{"an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", `GET / HTTP/1.1 "" 0 [] ""`, false},
	{"Pragma without Cache-Control", "GET / HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\n\r\n",
		`GET / HTTP/1.1 "a" 0 [Cache-Control: no-cache|Pragma: no-cache] ""`, false},
	{"methods are kept", "get / HTTP/1.1\r\nHost: a\r\n\r\n", `get / HTTP/1.1 "a" 0 [] ""`, false},
	{"a method of its own", "M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n", `M-SEARCH / HTTP/1.1 "a" 0 [] ""`, false},
	{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", `GET / HTTP/1.0 "" 0 [] "" close`, true},
	{"HTTP/1.0 with a Host", "GET / HTTP/1.0\r\nHost: a\r\n\r\n", `GET / HTTP/1.0 "a" 0 [] "" close`, true},
	{"HTTP/1.0 kept", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", `GET / HTTP/1.0 "" 0 [Connection: Keep-Alive] ""`, false},
	{"close", "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", `GET / HTTP/1.1 "a" 0 [Connection: x, Close] "" close`, true},
	{"Connection with a framing field", "POST / HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\nContent-Length: 2\r\n\r\nhi",
		`POST / HTTP/1.1 "a" 2 [Connection: Content-Length|Content-Length: 2] "hi"`, false},
	{"absolute-form, Host ignored", "GET http://b/x?y HTTP/1.1\r\nHost: a\r\n\r\n", `GET http://b/x?y HTTP/1.1 "b" 0 [] ""`, false},
	{"an upgrade that the handler ignores", "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
		`GET / HTTP/1.1 "a" 0 [Connection: Upgrade|Upgrade: x] ""`, false},
	{"CONNECT", "CONNECT b:443 HTTP/1.1\r\nHost: a\r\n\r\n", `CONNECT b:443 HTTP/1.1 "b:443" 0 [] ""`, false},
	{"CONNECT with a path", "CONNECT /rpc HTTP/1.1\r\nHost: a\r\n\r\n", `CONNECT /rpc HTTP/1.1 "a" 0 [] ""`, false},
	{"asterisk-form", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", `OPTIONS * HTTP/1.1 "a" 0 [] ""`, false},
	{"a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", `POST / HTTP/1.1 "a" 5 [Content-Length: 5] "hello"`, false},
	{"a body of a GET", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", `GET / HTTP/1.1 "a" 5 [Content-Length: 5] "hello"`, false},
	{"a body of a HEAD", "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", `HEAD / HTTP/1.1 "a" 5 [Content-Length: 5] "hello"`, false},
	{"a body of no bytes", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", `POST / HTTP/1.1 "a" 0 [Content-Length: 0] ""`, false},
	{"a POST without length", "POST / HTTP/1.1\r\nHost: a\r\n\r\n", `POST / HTTP/1.1 "a" 0 [] ""`, false},
	{"one length twice", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
		`POST / HTTP/1.1 "a" 2 [Content-Length: 2] "hi"`, false},
	{"zeros before a length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 002\r\n\r\nhi",
		`POST / HTTP/1.1 "a" 2 [Content-Length: 002] "hi"`, false},
	{"chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
		`POST / HTTP/1.1 "a" -1 [] "hello" [chunked]`, false},
	{"chunks in capitals", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
		`POST / HTTP/1.1 "a" -1 [] "0123456789" [chunked]`, false},
	{"chunks of a GET", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		`GET / HTTP/1.1 "a" -1 [] "hi" [chunked]`, false},
	{"chunks with extensions and zeros", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n002;a=\"b c\";d\r\nhi\r\n000;e\r\n\r\n",
		`POST / HTTP/1.1 "a" -1 [] "hi" [chunked]`, false},
	{"no chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", `POST / HTTP/1.1 "a" -1 [] "" [chunked]`, false},
	{"trailers", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-T, x-u\r\n\r\n0\r\nX-T: 1\r\nx-other: 2\r\n\r\n",
		`POST / HTTP/1.1 "a" -1 [] "" [chunked] announced [X-T|X-U] trailers [X-Other: 2|X-T: 1|X-U]`, false},
	{"trailers not announced", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n",
		`POST / HTTP/1.1 "a" -1 [] "hi" [chunked] announced [] trailers [X-T: 1]`, false},
	{"Trailer without chunks", "POST / HTTP/1.1\r\nHost: a\r\nTrailer: X-T\r\n\r\n", `POST / HTTP/1.1 "a" 0 [Trailer: X-T] ""`, false},
	{"an expectation of HTTP/1.0", "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
		`POST / HTTP/1.0 "" 2 [Content-Length: 2|Expect: 100-continue] "hi" close`, true},
}

// What a handler sees of a request; and the request behind it is the next one.
func TestContractRequests(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		for _, row := range requestRows {
			t.Run(row.name, func(t *testing.T) {
				saw := make(chan string, 2)
				_, addr := k.listen(t, &http.Server{DisableGeneralOptionsHandler: true, Handler: withProbe(func(_ http.ResponseWriter, r *http.Request) {
					saw <- described(r)
				})})
				received, kept := exchange(t, addr, row.request)
				if len(received) != 1 || kept == row.closed {
					t.Errorf("responses %q, kept: %v", received, kept)
				}
				if got := wiretest.Await(t, saw, "request"); got != row.want {
					t.Errorf("saw  %s\nwant %s", got, row.want)
				}
			})
		}
	})
}

// The bytes of a request's target are kept, and URL is what url.ParseRequestURI makes of them.
func TestContractTargets(t *testing.T) {
	targets := []string{"/", "/a%2Fb/%C3%A4?x=1&y=%zz;w", "//a//b", "/a?", "/?a?b", "/a#b", "/a/../b/./", "/a b", "*",
		"http://b", "http://b/", "HTTP://u:p@B:80/x?y", "http:///x", "urn:x:y", "mailto:a@b", "/\xc3\xa4\xff", "/%41", "/a\\b", "/a|b\"<>{}^`"}
	onServers(t, func(t *testing.T, k kind) {
		requests := make(chan *http.Request, 1)
		_, addr := k.listen(t, &http.Server{DisableGeneralOptionsHandler: true, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			requests <- r
		})})
		for _, target := range targets {
			want, err := url.ParseRequestURI(target)
			p := wiretest.Dial(t, addr)
			p.Send("GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			if err != nil || strings.Contains(target, " ") {
				p.Status(http.StatusBadRequest)
				continue
			}
			p.Status(http.StatusOK)
			r := wiretest.Await(t, requests, "request")
			if host := cmp(want.Host, "a"); !reflect.DeepEqual(r.URL, want) || r.RequestURI != target || r.Host != host {
				t.Errorf("target %q: %q, URL %#v, host %q, want %#v, %q", target, r.RequestURI, r.URL, r.Host, want, host)
			}
		}
	})
}

// cmp returns the first string that is not empty.
func cmp(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// The authority of a CONNECT is its URL's host.
func TestContractConnectURL(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		requests := make(chan *http.Request, 1)
		addr := k.handle(t, func(_ http.ResponseWriter, r *http.Request) { requests <- r })
		exchange(t, addr, "CONNECT b.example:443 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		r := wiretest.Await(t, requests, "request")
		if want := (&url.URL{Host: "b.example:443"}); !reflect.DeepEqual(r.URL, want) {
			t.Errorf("URL %#v, want %#v", r.URL, want)
		}
	})
}

// A body is never nil, and without one it is http.NoBody.
func TestContractNoBody(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		bodies := make(chan io.ReadCloser, 2)
		addr := k.handle(t, withProbe(func(_ http.ResponseWriter, r *http.Request) { bodies <- r.Body }))
		exchange(t, addr, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		exchange(t, addr, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
		for range 2 {
			if body := wiretest.Await(t, bodies, "request"); body != http.NoBody {
				t.Errorf("body %T", body)
			}
		}
	})
}

// The addresses of both ends, and the values of the context.
func TestContractAddresses(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		requests := make(chan *http.Request, 1)
		addr := k.handle(t, func(_ http.ResponseWriter, r *http.Request) { requests <- r })
		p := wiretest.Dial(t, addr)
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		r := wiretest.Await(t, requests, "request")
		if r.RemoteAddr != p.LocalAddr().String() {
			t.Errorf("RemoteAddr %q, want %s", r.RemoteAddr, p.LocalAddr())
		}
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !ok || local.String() != addr {
			t.Errorf("local address %v, want %s", local, addr)
		}
		if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); !ok || s == nil || s.Handler == nil {
			t.Errorf("server %v", r.Context().Value(http.ServerContextKey))
		}
		if r.TLS != nil {
			t.Errorf("TLS %v", r.TLS)
		}
	})
}

// A request over TLS has the connection's state.
func TestContractTLSState(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		requests := make(chan *http.Request, 1)
		_, addr := k.listen(t, &http.Server{TLSConfig: new(tls.Config), Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			requests <- r
		})})
		conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, ServerName: "a.example", NextProtos: []string{"http/1.1"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		p := wiretest.NewPeer(t, conn)
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		p.Status(http.StatusOK)
		state := wiretest.Await(t, requests, "request").TLS
		if state == nil || !state.HandshakeComplete || state.ServerName != "a.example" || state.NegotiatedProtocol != "http/1.1" {
			t.Errorf("state %+v", state)
		}
	})
}

// Requests that arrive together are served one after the other; so are those whose bytes arrive one by one.
func TestContractPipelined(t *testing.T) {
	const requests = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n" +
		"POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc" +
		"POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n3;x=y\r\ndef\r\n1\r\ng\r\n0\r\nX-T: 1\r\n\r\n" +
		"HEAD /4 HTTP/1.1\r\nHost: a\r\nX-A: b\r\n\r\n" +
		"GET /5 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	want := []string{`GET /1 HTTP/1.1 "a" 0 [] ""`, `POST /2 HTTP/1.1 "a" 3 [Content-Length: 3] "abc"`,
		`POST /3 HTTP/1.1 "a" -1 [] "defg" [chunked] announced [X-T] trailers [X-T: 1]`, `HEAD /4 HTTP/1.1 "a" 0 [X-A: b] ""`,
		`GET /5 HTTP/1.1 "a" 0 [Connection: close] "" close`}
	onServersInBubble(t, func(t *testing.T, k kind) {
		var saw []string
		_, l := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			saw = append(saw, described(r))
			w.Header().Set("Content-Length", "0")
		})})
		for _, piece := range []int{1, 2, 3, 7, 64, len(requests)} {
			saw = nil
			c := l.dial(t)
			got := ""
			for part := range slices.Chunk([]byte(requests), piece) {
				got += c.send(string(part))
			}
			if n := strings.Count(got, "HTTP/1.1 200 OK\r\n"); n != len(want) || !c.closed() {
				t.Errorf("pieces of %d: %d responses, closed: %v", piece, n, c.closed())
			}
			if !slices.Equal(saw, want) {
				t.Errorf("pieces of %d: saw %q", piece, saw)
			}
		}
	})
}

// Empty lines before a request: net/http's server accepts them behind a POST only.
func TestContractEmptyLines(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		addr := k.handle(t, withProbe(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
		received, kept := exchange(t, addr, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\n")
		if len(received) != 1 || !kept {
			t.Errorf("responses %q, kept: %v", received, kept)
		}
	})
}

// The context ends when the client goes, also when it is derived from, and not because of the next request.
func TestContractContextEndsWithClient(t *testing.T) {
	waits := map[string]func(ctx context.Context){
		"Done": func(ctx context.Context) { <-ctx.Done() },
		"AfterFunc": func(ctx context.Context) {
			called := make(chan struct{})
			context.AfterFunc(ctx, func() { close(called) })
			<-called
		},
		"WithCancel": func(ctx context.Context) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			<-ctx.Done()
		},
		"WithTimeout": func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			<-ctx.Done()
		},
		"Err": func(ctx context.Context) {
			for ctx.Err() == nil {
				time.Sleep(time.Second)
			}
		},
		"Done, late": func(ctx context.Context) {
			time.Sleep(time.Minute)
			<-ctx.Done()
		},
		"twice": func(ctx context.Context) {
			go func() { <-ctx.Done() }()
			<-ctx.Done()
		},
	}
	requests := map[string]string{
		"GET":    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST":   "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
		"chunks": "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		"POST whose context is used before its body is read": "POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
	}
	onServersInBubble(t, func(t *testing.T, k kind) {
		for name, wait := range waits {
			for method, request := range requests {
				var began, ended, cause error
				c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if strings.HasPrefix(r.URL.Path, "/early") {
						_ = r.Context().Done()
					}
					_, _ = io.Copy(io.Discard, r.Body)
					began = r.Context().Err()
					wait(r.Context())
					ended, cause = r.Context().Err(), context.Cause(r.Context())
				})})
				c.expect(c.send(request), "")
				if ended != nil {
					t.Errorf("%s of a %s: ended while the client was there", name, method)
				}
				c.Close()
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if began != nil || ended != context.Canceled || cause != context.Canceled {
					t.Errorf("%s of a %s: %v at first, then %v, cause %v", name, method, began, ended, cause)
				}
			}
		}
	})
}

// A next request does not end the context of the one that is served, and none of its bytes is lost.
func TestContractContextAndNextRequest(t *testing.T) {
	const next = "GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
	onServersInBubble(t, func(t *testing.T, k kind) {
		var saw []string
		_, l := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			saw = append(saw, described(r))
			if r.URL.Path == "/next" {
				return
			}
			select {
			case <-r.Context().Done():
				t.Error("the context has ended")
			case <-time.After(time.Minute):
			}
		})})
		for sent := range len(next) {
			saw = nil
			c := l.dial(t)
			c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			c.expect(c.send(next[:sent]), "")
			c.expect(c.after(2*time.Minute), "HTTP/1.1 200 OK\r\n")
			c.expect(c.send(next[sent:]), "HTTP/1.1 200 OK\r\n")
			if want := []string{`GET / HTTP/1.1 "a" 0 [] ""`, `GET /next HTTP/1.1 "a" 0 [] ""`}; !slices.Equal(saw, want) {
				t.Errorf("%d bytes early: saw %q", sent, saw)
			}
		}
	})
}

// The context ends when the handler returns or panics, with those that are derived from it.
func TestContractContextEndsWithHandler(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		for _, leave := range []func(w http.ResponseWriter){
			func(http.ResponseWriter) {},
			func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
			func(w http.ResponseWriter) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				conn.Close()
			},
		} {
			var contexts []context.Context
			c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				derived, cancel := context.WithTimeout(r.Context(), time.Hour)
				_ = cancel // the parent's end is what is tested
				contexts = []context.Context{r.Context(), derived}
				leave(w)
			})})
			c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			for i, ctx := range contexts {
				select {
				case <-ctx.Done():
				default:
					t.Errorf("context %d is not done", i)
				}
				if err := ctx.Err(); err != context.Canceled {
					t.Errorf("context %d: %v", i, err)
				}
			}
			if len(contexts) == 0 {
				t.Error("not served")
			}
		}
	})
}

// A context that is first used after its handler has returned has ended.
func TestContractContextUsedLate(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		var contexts []context.Context
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			contexts = append(contexts, r.Context())
		})})
		for range 4 {
			c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		}
		if len(contexts) != 4 {
			t.Fatalf("%d requests", len(contexts))
		}
		<-contexts[0].Done()
		if err := contexts[1].Err(); err != context.Canceled {
			t.Errorf("Err: %v", err)
		}
		called := make(chan struct{})
		context.AfterFunc(contexts[2], func() { close(called) })
		<-called
		derived, cancel := context.WithCancel(contexts[3])
		defer cancel()
		<-derived.Done()
	})
}

// Close of the server ends the contexts of what it serves.
func TestContractContextEndsWithServer(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		l := newMemory()
		ended := false
		s := k.serve(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended = true
		})}, l)
		c := l.dial(t)
		c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		s.Close()
		if synctest.Wait(); !ended {
			t.Error("the context has not ended")
		}
	})
}

// A handler may keep its request, with its header, and its own header: no later request changes them.
func TestContractKeptRequests(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		type kept struct {
			r              *http.Request
			header         http.Header
			was, headerWas string
		}
		var all []kept
		_, l := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Response", r.URL.Path)
			all = append(all, kept{r, w.Header(), described(r), fields(w.Header())})
		})})
		for n := range 3 {
			c := l.dial(t)
			for i := range 5 {
				c.send(fmt.Sprintf("POST /%d-%d HTTP/1.1\r\nHost: h%d\r\nX-A: %d\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\nX-T: %d\r\n\r\n", n, i, i, i, i))
			}
		}
		if len(all) != 15 {
			t.Fatalf("%d requests", len(all))
		}
		for _, k := range all {
			k.r.Body = io.NopCloser(strings.NewReader("b"))
			// The trailers are there from the beginning now.
			if now := strings.Replace(described(k.r), "announced [X-T: ", "announced [] trailers [X-T: ", 1); !strings.HasPrefix(now, k.was[:len(k.was)-1]) || fields(k.header) != k.headerWas {
				t.Errorf("is %s, %s; was %s, %s", now, fields(k.header), k.was, k.headerWas)
			}
		}
	})
}

// Clients that send at the same time receive their own responses, whole.
func TestContractManyClients(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		addr := k.handle(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.URL.Path+" "+r.Header.Get("X-A")+" ")
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(body)
		})
		var clients sync.WaitGroup
		for n := range 16 {
			clients.Go(func() {
				p := wiretest.Dial(t, addr)
				for i := range wiretest.Size(200, 40) {
					body := strings.Repeat(fmt.Sprint(n%10), i*i%5000)
					p.Send(fmt.Sprintf("POST /%d-%d HTTP/1.1\r\nHost: a\r\nX-A: %d\r\nContent-Length: %d\r\n\r\n%sGET /next-%d HTTP/1.1\r\nHost: a\r\n\r\n", n, i, i, len(body), body, i))
					if _, got := p.Response("POST"); got != fmt.Sprintf("/%d-%d %d %s", n, i, i, body) {
						t.Errorf("client %d, request %d: %.100q", n, i, got)
					}
					if _, got := p.Response("GET"); got != fmt.Sprintf("/next-%d  ", i) {
						t.Errorf("client %d, next %d: %.100q", n, i, got)
					}
				}
			})
		}
		clients.Wait()
	})
}
