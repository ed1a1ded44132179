package server_test

import (
	"bytes"
	"errors"
	"expvar"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/http/pprof"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// http.ServeContent serves ranges and conditions; http.FileServer files, with their types and redirects.
func TestContractFiles(t *testing.T) {
	dir := t.TempDir()
	content := wiretest.Pattern(1 << 20)
	changed := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	path := filepath.Join(dir, "a.txt")
	if err := errors.Join(os.WriteFile(path, content, 0o600), os.Chtimes(path, changed, changed), os.Mkdir(filepath.Join(dir, "sub"), 0o700)); err != nil {
		t.Fatal(err)
	}
	onServers(t, func(t *testing.T, k kind) {
		mux := http.NewServeMux()
		mux.Handle("/files/", http.StripPrefix("/files", http.FileServer(http.Dir(dir))))
		mux.HandleFunc("/content", func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a.txt", changed, bytes.NewReader(content))
		})
		_, addr := k.listen(t, &http.Server{Handler: mux})
		for _, page := range []string{"http://" + addr + "/files/a.txt", "http://" + addr + "/content"} {
			for _, row := range []struct {
				name, value string
				status      int
				want        []byte
			}{
				{"X-None", "", 200, content},
				{"Range", "bytes=10-19", 206, content[10:20]},
				{"Range", "bytes=-70000", 206, content[len(content)-70_000:]},
				{"Range", "bytes=9999999-", 416, []byte("invalid range: failed to overlap\n")},
				{"If-Modified-Since", changed.Format(http.TimeFormat), 304, nil},
			} {
				resp, body := wiretest.Get(t, page, row.name, row.value)
				if resp.StatusCode != row.status || resp.Header.Get("Last-Modified") == "" && row.status != 416 {
					t.Errorf("%s with %s %s: %s, %v", page, row.name, row.value, resp.Status, resp.Header)
				}
				wiretest.SameBytes(t, page+" "+row.value, body, row.want)
			}
			resp, body := wiretest.Get(t, page, "Range", "bytes=0-0,2-2")
			if resp.StatusCode != 206 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "multipart/byteranges") || bytes.Count(body, []byte("Content-Range: bytes ")) != 2 {
				t.Errorf("%s: two ranges: %s, %d bytes", page, resp.Status, len(body))
			}
		}
		received, kept := exchange(t, addr, "GET /files/sub HTTP/1.1\r\nHost: a\r\n\r\n")
		if len(received) == 0 || received[0] != "HTTP/1.1 301 Moved Permanently|Content-Length: 0|Location: sub/" {
			t.Errorf("received %q, kept: %v", received, kept)
		}
	})
}

// http.TimeoutHandler writes its response while the handler runs, and ends the handler's context.
func TestContractTimeoutHandler(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		var late error
		inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-r.Context().Done()
				time.Sleep(time.Second)
				_, late = io.WriteString(w, "late")
				return
			}
			w.Header().Set("X-A", "1")
			_, _ = io.Copy(w, r.Body)
		})
		c, _ := k.inBubble(t, &http.Server{Handler: http.TimeoutHandler(inner, 10*time.Second, "too slow")})
		for range 2 {
			got := replies(c.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"))
			if want := "HTTP/1.1 200 OK|Content-Length: 2|" + text + "|X-A: 1||hi"; len(got) != 1 || got[0] != want {
				t.Errorf("received %q, want %q", got, want)
			}
			got = replies(c.send(strings.Replace(get, "/", "/slow", 1)) + c.after(time.Minute))
			if want := "HTTP/1.1 503 Service Unavailable|Content-Length: 8|" + text + "||too slow"; len(got) != 1 || got[0] != want || late != http.ErrHandlerTimeout {
				t.Errorf("received %q, want %q; late write: %v", got, want, late)
			}
		}
	})
}

// http.MaxBytesHandler refuses larger bodies, and passes others.
func TestContractMaxBytesHandler(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		_, addr := k.listen(t, &http.Server{Handler: http.MaxBytesHandler(withProbe(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
		}), 5)})
		for body, want := range map[string]string{"12345": "HTTP/1.1 200 OK|", "123456": "HTTP/1.1 413 "} {
			received, _ := exchange(t, addr, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
			if len(received) != 1 || !strings.HasPrefix(received[0], want) {
				t.Errorf("%q: received %q", body, received)
			}
		}
	})
}

// gorilla/websocket takes connections, with and without TLS.
func TestContractGorillaWebSocket(t *testing.T) {
	upgrader := websocket.Upgrader{EnableCompression: true}
	onServers(t, func(t *testing.T, k kind) {
		for _, secure := range []bool{false, true} {
			o := &http.Server{ReadTimeout: time.Hour, WriteTimeout: time.Hour, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, err := upgrader.Upgrade(w, r, http.Header{"X-A": {"1"}})
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				for {
					kind, message, err := conn.ReadMessage()
					if err != nil || conn.WriteMessage(kind, message) != nil {
						return
					}
				}
			})}
			scheme := "ws"
			if secure {
				o.TLSConfig, scheme = testTLS(), "wss"
			}
			_, addr := k.listen(t, o)
			dialer := websocket.Dialer{EnableCompression: true, TLSClientConfig: testTLS()}
			conn, resp, err := dialer.Dial(scheme+"://"+addr, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.Header.Get("X-A") != "1" {
				t.Errorf("header %v", resp.Header)
			}
			for _, message := range []string{"", "hello", strings.Repeat("much ", 50_000)} {
				if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
					t.Error(err)
				}
				if _, got, err := conn.ReadMessage(); err != nil || string(got) != message {
					t.Errorf("received %d bytes, %v, want %d", len(got), err, len(message))
				}
			}
			conn.Close()
		}
	})
}

// An httputil.ReverseProxy passes requests, interim responses, trailers and upgrades.
func TestContractReverseProxy(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, rw, _ := w.(http.Hijacker).Hijack()
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_, _ = io.Copy(conn, rw)
			return
		}
		w.Header().Set("Trailer", "X-T")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("X-T", "1")
	}))
	t.Cleanup(target.Close)
	to, _ := url.Parse(target.URL)
	onServers(t, func(t *testing.T, k kind) {
		transport := new(http.Transport)
		t.Cleanup(transport.CloseIdleConnections)
		proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
		_, addr := k.listen(t, &http.Server{Handler: proxy})
		p := wiretest.Dial(t, addr)
		p.Send("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-U\r\n\r\n5\r\nhello\r\n0\r\nX-U: 1\r\n\r\n")
		received := replies(p.Rest()) // not behind a half-close, which would end the context of the proxy's request
		if len(received) != 2 || !strings.HasPrefix(received[0], "HTTP/1.1 103 ") || !strings.HasSuffix(received[1], "||hello||X-T: 1") {
			t.Errorf("received %q", received)
		}
		p = wiretest.Dial(t, addr)
		p.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		if header := p.Header(); !strings.HasPrefix(header, "HTTP/1.1 101 ") {
			t.Errorf("header %q", header)
		}
		p.Send("hello")
		p.Receive("hello")
		p.End()
		p.Ended()
	})
}

// The handlers of net/http/pprof and expvar serve.
func TestContractDebugPages(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.Handle("/debug/vars", expvar.Handler())
	onServers(t, func(t *testing.T, k kind) {
		_, addr := k.listen(t, &http.Server{Handler: mux, WriteTimeout: time.Hour})
		for page, want := range map[string]string{"pprof/": "goroutine", "pprof/cmdline": filepath.Base(os.Args[0]), "pprof/goroutine?debug=1": "goroutine profile",
			"pprof/profile?seconds=1": "\x1f\x8b", "vars": "memstats"} {
			if resp, body := wiretest.Get(t, "http://"+addr+"/debug/"+page); resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(want)) {
				t.Errorf("%s: %s %.100q", page, resp.Status, body)
			}
		}
	})
}

// The files of a form are removed when its handler has returned.
func TestContractMultipartForm(t *testing.T) {
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	part, err := writer.CreateFormFile("f", "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	content := wiretest.Pattern(100 << 10)
	_, _ = part.Write(content)
	writer.Close()
	onServers(t, func(t *testing.T, k kind) {
		names := make(chan string, 1)
		addr := k.handle(t, func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(100); err != nil {
				t.Error(err)
				return
			}
			f, err := r.MultipartForm.File["f"][0].Open()
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			got, err := io.ReadAll(f)
			if err != nil {
				t.Error(err)
			}
			wiretest.SameBytes(t, "file", got, content)
			names <- f.(*os.File).Name()
		})
		received, _ := exchange(t, addr, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
			writer.FormDataContentType(), form.Len(), &form))
		if name := wiretest.Await(t, names, "form"); len(received) != 1 {
			t.Errorf("received %q", received)
		} else if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	})
}

// A mux matches by method, host and wildcards, cleans paths, and refuses other methods.
func TestContractServeMux(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", func(w http.ResponseWriter, r *http.Request) { write(r.PathValue("id"))(w) })
	mux.HandleFunc("b.example/", func(w http.ResponseWriter, r *http.Request) { write("host b")(w) })
	onServers(t, func(t *testing.T, k kind) {
		_, addr := k.listen(t, &http.Server{Handler: mux})
		for request, want := range map[string]string{
			"GET /items/a%2Fb":         "HTTP/1.1 200 OK|Content-Length: 3|" + text + "||a/b",
			"POST /items/1":            "HTTP/1.1 405 Method Not Allowed|Allow: GET, HEAD|",
			"GET /x/../items/1":        "HTTP/1.1 307 Temporary Redirect|",
			"GET http://b.example:80/": "HTTP/1.1 200 OK|Content-Length: 6|" + text + "||host b",
			"OPTIONS *":                "HTTP/1.1 200 OK|Content-Length: 0",
		} {
			received, _ := exchange(t, addr, request+" HTTP/1.1\r\nHost: a\r\n\r\n")
			if len(received) < 1 || !strings.HasPrefix(received[0], want) {
				t.Errorf("%s: received %q, want %q", request, received, want)
			}
		}
	})
}

// http.Client keeps connections, sends bodies and trailers, and waits for 100 (Continue).
func TestContractClient(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		var clients []string
		addr := k.handle(t, func(w http.ResponseWriter, r *http.Request) {
			clients = append(clients, r.RemoteAddr)
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(body)
			w.Header().Set(http.TrailerPrefix+"X-T", r.Trailer.Get("X-U"))
		})
		transport := &http.Transport{ExpectContinueTimeout: time.Hour}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
		for _, size := range []int{0, 1, 5000, 300 << 10} {
			content := wiretest.Pattern(size)
			r, err := http.NewRequest(http.MethodPost, "http://"+addr, io.MultiReader(bytes.NewReader(content)))
			if err != nil {
				t.Fatal(err)
			}
			r.Trailer = http.Header{"X-U": {"1"}}
			r.Header.Set("Expect", "100-continue")
			resp, err := client.Do(r)
			if err != nil {
				t.Errorf("%d bytes: %v", size, err)
				continue
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			wiretest.SameBytes(t, fmt.Sprint(err), got, content)
			if size > 5000 && resp.Trailer.Get("X-T") != "1" {
				t.Errorf("%d bytes: trailers %v", size, resp.Trailer)
			}
		}
		if slices.Sort(clients); len(slices.Compact(clients)) != 1 {
			t.Errorf("connections from %v", clients)
		}
	})
}
