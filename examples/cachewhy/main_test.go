package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBare410: for the page of the incident it says that browsers keep it without limit, and what
// to send instead, which makes them request it again.
func TestBare410(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fixed" {
			w.Header().Set("Cache-Control", "private, no-cache")
			w.Header().Set("Expires", "Thu, 01 Jan 1970 00:00:01 GMT")
		}
		w.WriteHeader(http.StatusGone)
	}))
	defer s.Close()
	bare, fixed := output(t, s.URL, ""), output(t, s.URL+"/fixed", "")
	for _, want := range []string{"410 Gone", "Chromium             yes     without limit", "Firefox              yes     without limit", "    Cache-Control: private, no-cache", "    Expires: Thu, 01 Jan 1970 00:00:01 GMT"} {
		if !strings.Contains(bare, want) {
			t.Errorf("the output does not have %q:\n%s", want, bare)
		}
	}
	if strings.Contains(fixed, "yes") || strings.Contains(fixed, "Send instead") {
		t.Errorf("for the corrected page the output is\n%s", fixed)
	}
}

func output(t *testing.T, source, in string) string {
	t.Helper()
	var out strings.Builder
	if err := run([]string{source}, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestHeaders reads what curl prints, the last of several headers.
func TestHeaders(t *testing.T) {
	for in, want := range map[string]string{
		"HTTP/1.1 410 Gone\r\n\r\nGone, said the page\n":                                   "410 Gone",
		"HTTP/2 404\nCache-Control: max-age=60\n\n":                                        "max-age=60",
		"HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\nHTTP/1.1 200 OK\r\nPragma: no-cache\r\n": "200 OK",
	} {
		file := filepath.Join(t.TempDir(), "head")
		if err := os.WriteFile(file, []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, got := range []string{output(t, "-", in), output(t, file, "")} {
			if !strings.Contains(got, want) {
				t.Errorf("%q: %s", in, got)
			}
		}
	}
}

// TestBadInput: bad input is reported.
func TestBadInput(t *testing.T) {
	for in, want := range map[string]string{"": "no header", "hello\n": `"hello" is not a status line`, "HTTP/1.1 200 OK\nnothing\n": `"nothing" is not a header field`} {
		if err := run([]string{"-"}, strings.NewReader(in), new(strings.Builder)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
	for _, args := range [][]string{nil, {"a", "b"}, {"-x"}, {"/no/such/file"}} {
		if err := run(args, strings.NewReader(""), new(strings.Builder)); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}
