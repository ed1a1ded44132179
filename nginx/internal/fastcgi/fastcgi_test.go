package fastcgi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/nginx/internal/backend"
	"github.com/culvert-go/culvert/nginx/internal/cgi"
	"github.com/culvert-go/culvert/nginx/internal/fastcgi"
)

func record(kind byte, content string) string {
	return string([]byte{1, kind, 0, 1, byte(len(content) >> 8), byte(len(content)), 3, 0}) + content + "pad"
}

const end = 3

func endRequest() string { return record(end, strings.Repeat("\x00", 8)) }

// read reads a response to a request of method from text.
func read(method, text string, o fastcgi.Options) (status int, h http.Header, body string, reusable bool, err error) {
	r, _ := http.NewRequest(method, "http://h/", nil)
	resp, kept, err := fastcgi.Protocol(o).ReadResponse(bufio.NewReader(strings.NewReader(text)), r)
	if err != nil {
		return 0, nil, "", false, err
	}
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(b), err == nil && kept(), err
}

func TestReadResponse(t *testing.T) {
	for name, tt := range map[string]struct {
		text     string
		status   int
		body     string
		reusable bool
		err      error
	}{
		"one record":          {record(6, "Content-Type: a/b\r\n\r\nbody") + record(6, "") + endRequest(), 200, "body", true, nil},
		"a header in pieces":  {record(6, "Stat") + record(6, "us: 404 No\n") + record(7, "warn") + record(6, "A: b\n\nx") + record(6, "y") + endRequest(), 404, "xy", true, nil},
		"a redirect":          {record(6, "Location: /x\r\n\r\n") + record(6, "") + endRequest(), 302, "", true, nil},
		"a length":            {record(6, "Content-Length: 2\n\nabc") + endRequest(), 200, "ab", false, nil},
		"no end":              {record(6, "A: b\n\nbody"), 200, "body", false, io.ErrUnexpectedEOF},
		"a shorter body":      {record(6, "Content-Length: 9\n\nabc") + endRequest(), 200, "abc", false, io.ErrUnexpectedEOF},
		"stdout closed":       {record(6, "A: b\n\nbody") + record(6, ""), 200, "body", false, nil},
		"more than the reply": {record(6, "A: b\n\nbody") + record(6, "") + endRequest() + "x", 200, "body", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, body, reusable, err := read("GET", tt.text, fastcgi.Options{KeepConn: true})
			if status != tt.status || body != tt.body || reusable != tt.reusable || !errors.Is(err, tt.err) {
				t.Errorf("status %d, body %q, reusable %v, error %v", status, body, reusable, err)
			}
		})
	}
	for name, text := range map[string]string{
		"nothing":         "",
		"another version": "\x02" + record(6, "A: b\n\n")[1:],
		"another request": strings.Replace(record(6, "A: b\n\n"), "\x00\x01", "\x00\x02", 1),
		"an unknown type": record(9, "A: b\n\n"),
		"no header":       record(6, "") + endRequest(),
		"half a header":   record(6, "A: b\n") + record(6, "") + endRequest(),
		"a bad field":     record(6, "A b: c\n\n") + endRequest(),
		"a bad status":    record(6, "Status: ok\n\n") + endRequest(),
		"a bad length":    record(6, "Content-Length: -1\n\n") + endRequest(),
		"a large header":  strings.Repeat(record(6, "A: "+strings.Repeat("b", 60000)+"\n"), 2) + endRequest(),
	} {
		if status, _, _, _, err := read("GET", text, fastcgi.Options{}); err == nil {
			t.Errorf("%s: status %d", name, status)
		}
	}
}

// What a program writes to its standard error is reported, and may end the exchange.
func TestStderr(t *testing.T) {
	var seen string
	fail := errors.New("fail")
	o := fastcgi.Options{Stderr: func(_ *http.Request, text []byte) error {
		seen += string(text)
		if strings.Contains(seen, "fatal") {
			return fail
		}
		return nil
	}}
	if _, _, _, _, err := read("GET", record(7, "warning")+record(6, "A: b\n\n")+endRequest(), o); err != nil || seen != "warning" {
		t.Errorf("%q, %v", seen, err)
	}
	if _, _, _, _, err := read("GET", record(7, " fatal")+record(6, "A: b\n\n")+endRequest(), o); err != fail {
		t.Errorf("the error is %v", err)
	}
}

// transport returns one to a server of net/http/fcgi, which keeps connections if keep is set.
func transport(t *testing.T, keep bool, serve http.HandlerFunc) (*backend.Transport, *int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = fcgi.Serve(l, serve) }()
	dialled := new(int)
	tr := backend.New(backend.Options{
		Protocol: fastcgi.Protocol(fastcgi.Options{KeepConn: keep, Params: func(r *http.Request) []cgi.Param {
			return append([]cgi.Param{{Name: "REQUEST_METHOD", Value: r.Method}, {Name: "REQUEST_URI", Value: r.URL.RequestURI()},
				{Name: "SERVER_PROTOCOL", Value: "HTTP/1.1"}, {Name: "LONG", Value: strings.Repeat("x", 300)}}, cgi.Fields(r, nil, nil)...)
		}}),
		Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			*dialled++
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		},
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, MaxIdle: 2,
	})
	t.Cleanup(func() { tr.CloseIdleConnections(); l.Close(); <-done })
	return tr, dialled
}

func TestExchange(t *testing.T) {
	leaktest.Check(t)
	tr, dialled := transport(t, true, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-A"))
		w.WriteHeader(201)
		w.Write(body)
	})
	big := bytes.Repeat([]byte("0123456789"), 20000)
	for range 3 {
		r, _ := http.NewRequest("POST", "http://h/p?q", io.NopCloser(bytes.NewReader(big)))
		r.Header.Set("X-A", "b")
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 201 || resp.Header.Get("X-Seen") != "POST /p?q b" || !bytes.Equal(body, big) {
			t.Fatalf("status %d, header %v, %d bytes, error %v", resp.StatusCode, resp.Header, len(body), err)
		}
	}
	if *dialled != 1 {
		t.Errorf("%d connections", *dialled)
	}
}

// A response is relayed while the request is still being sent, and its end ends the request's body.
func TestStreaming(t *testing.T) {
	leaktest.Check(t)
	tr, _ := transport(t, false, func(w http.ResponseWriter, r *http.Request) {
		piece := make([]byte, 5)
		_, _ = io.ReadFull(r.Body, piece)
		w.Write(piece)
	})
	pr, pw := io.Pipe()
	defer pw.Close()
	r, _ := http.NewRequest("POST", "http://h/", pr)
	go pw.Write([]byte("hello"))
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "hello" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
	if _, err := pw.Write([]byte("x")); err != io.ErrClosedPipe {
		t.Errorf("behind the response the body is still open: %v", err)
	}
}

// A body that fails ends the exchange: the program does not wait for the rest, and gets no end.
func TestBrokenBody(t *testing.T) {
	leaktest.Check(t)
	read := make(chan error, 1)
	tr, _ := transport(t, true, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		read <- err
	})
	broken := errors.New("broken")
	pr, pw := io.Pipe()
	r, _ := http.NewRequest("POST", "http://h/", pr)
	go func() {
		_, _ = pw.Write([]byte("hello"))
		_ = pw.CloseWithError(broken)
	}()
	if _, err := tr.RoundTrip(r); err != broken {
		t.Errorf("the error is %v", err)
	}
	if err := wiretest.Await(t, read, "the program's error"); err == nil {
		t.Error("the program has seen an end")
	}
}

// The end of the context ends an exchange.
func TestContext(t *testing.T) {
	leaktest.Check(t)
	released := make(chan struct{})
	tr, _ := transport(t, false, func(http.ResponseWriter, *http.Request) { <-released })
	defer close(released)
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "GET", "http://h/", nil)
	go cancel()
	if _, err := tr.RoundTrip(r); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func FuzzReadResponse(f *testing.F) {
	f.Add([]byte(record(6, "Status: 404\nA: b\n\nbody") + record(7, "e") + record(6, "") + endRequest()))
	f.Add([]byte(record(6, "Content-Length: 3\n\nbody") + endRequest()))
	f.Fuzz(func(t *testing.T, data []byte) {
		status, _, body, _, err := read("GET", string(data), fastcgi.Options{KeepConn: true})
		if err == nil && (status < 200 || status > 999) {
			t.Errorf("status %d", status)
		}
		if len(body) > len(data) {
			t.Errorf("%d bytes of %d", len(body), len(data))
		}
		if err == nil && !bytes.Contains(data, []byte{1, 3, 0, 1}) && !bytes.Contains(data, []byte{1, 6, 0, 1, 0, 0}) && !strings.Contains(string(data), "ength") {
			t.Errorf("a response without an end looks whole: %q", body)
		}
	})
}
