package engine_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// slicedOrigin serves "0123456789abcdef" by http.ServeContent, and records the ranges.
type slicedOrigin struct {
	mu     sync.Mutex
	ranges []string
	etags  int
}

func (o *slicedOrigin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.ranges = append(o.ranges, r.Header.Get("Range"))
	o.etags++
	n := len(o.ranges)
	o.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Etag", `"one"`)
	switch {
	case r.URL.Path == "/changed" && n > 1:
		w.Header().Set("Etag", `"two"`)
	case r.URL.Path == "/whole", r.URL.Path == "/stops" && n > 1:
		r.Header.Del("Range")
	case r.URL.Path == "/other":
		r.Header.Set("Range", "bytes=1-4")
	case r.URL.Path == "/short" && n > 1:
		w.Header().Set("Content-Range", "bytes 4-7/16")
		w.WriteHeader(206)
		_, _ = io.WriteString(w, "4")
		return
	case r.URL.Path == "/unknown":
		w.Header().Set("Content-Range", "bytes 0-3/*")
		w.WriteHeader(206)
		_, _ = io.WriteString(w, "0123")
		return
	}
	http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader([]byte("0123456789abcdef")))
}

func (o *slicedOrigin) seen() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := strings.Join(o.ranges, " ")
	o.ranges = nil
	return s
}

func serveSlices(t *testing.T) (*site, *slicedOrigin) {
	o := new(slicedOrigin)
	up := httptest.NewServer(o)
	t.Cleanup(up.Close)
	return serve(t, server(`slice 4; proxy_set_header Range $slice_range; proxy_set_header If-Range ""; proxy_set_header If-None-Match ""; proxy_set_header If-Match "";
		location / { proxy_pass `+up.URL+`; }
		location /sub/ { sub_filter 34 X; sub_filter_once off; proxy_pass `+up.URL+`/; }
		location /text { return 200 "$slice_range"; }
		location /none { slice 0; return 200 "$slice_range"; }`)), o
}

func TestSlice(t *testing.T) {
	s, o := serveSlices(t)
	const all = "0123456789abcdef"
	const four = "bytes=0-3 bytes=4-7 bytes=8-11 bytes=12-15"
	for _, tt := range []struct {
		target, fields string
		status         int
		body, requests string
	}{
		{"/x", "", 200, all, four},
		{"/x", "Range: bytes=5-6", 206, "56", "bytes=4-7"},
		{"/x", "Range: bytes=3-8", 206, "345678", "bytes=0-3 bytes=4-7 bytes=8-11"},
		{"/x", "Range: bytes=-2", 206, "ef", "bytes=0-3 bytes=12-15"},
		{"/x", "Range: bytes=9-", 206, "9abcdef", "bytes=8-11 bytes=12-15"},
		{"/x", "Range: bytes=1-2,4-5", 200, all, four},
		{"/x", "Range: bytes=5-6\nIf-Range: \"one\"", 206, "56", "bytes=0-3 bytes=4-7"},
		{"/x", "Range: bytes=5-6\nIf-Range: \"none\"", 200, all, four},
		{"/x", "If-None-Match: \"one\"", 304, "", "bytes=0-3"},
		{"/x", "If-Match: \"none\"", 412, "", "bytes=0-3"},
		{"/x", "Range: bytes=2-1", 416, "", "bytes=0-3"},
		{"/whole", "Range: bytes=1-2", 200, all, "bytes=0-3"},
		{"/sub/x", "", 200, "012X56789abcdef", four}, // across two slices
		{"/text", "Range: bytes=9-", 200, "", ""},    // as in nginx: the status has been set
		{"/none", "", 200, "", ""},
	} {
		got := s.get(tt.target, strings.Split(tt.fields, "\n")...)
		requests := o.seen()
		equal(t, tt.target+" "+tt.fields, got.body, tt.body)
		equal(t, tt.target+" "+tt.fields, got.StatusCode, tt.status)
		equal(t, tt.target+" "+tt.fields, requests, tt.requests)
	}
	part := s.get("/x", "Range: bytes=5-6")
	equal(t, "fields", part.Header.Get("Content-Range")+" "+part.Header.Get("Content-Length")+part.Header.Get("Accept-Ranges"), "bytes 5-6/16 2")
	o.seen()
	equal(t, "HEAD", s.request("HEAD", "/x").Header.Get("Content-Length"), "16")
	equal(t, "HEAD", o.seen(), "bytes=0-3")
}

// A slice that does not fit ends the response, so that it does not look complete.
func TestSlicesDoNotFit(t *testing.T) {
	s, o := serveSlices(t)
	for target, want := range map[string]string{
		"/changed": "etag mismatch in slice response",
		"/stops":   "unexpected status code 200 in slice response",
		"/other":   "unexpected range in slice response: 1-5, expected: 0-5",
		"/unknown": "no complete length in slice response",
		"/short":   "",
	} {
		o.seen()
		conn, err := net.Dial("tcp", s.first)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
		got, _ := io.ReadAll(conn)
		conn.Close()
		if _, body, _ := strings.Cut(string(got), "\r\n\r\n"); len(body) >= 16 || !strings.Contains(s.errors.String(), want) {
			t.Errorf("%s: %q\n%s", target, got, s.errors)
		}
	}
}
