package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBare410: of the accident it says that browsers keep the page without limit, and what to
// send instead, which makes it be asked for again.
func TestBare410(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fixed" {
			w.Header().Set("Cache-Control", "private, no-cache")
			w.Header().Set("Expires", "Thu, 01 Jan 1970 00:00:01 GMT")
		}
		w.WriteHeader(http.StatusGone)
	}))
	defer s.Close()
	bare, fixed := told(t, s.URL, ""), told(t, s.URL+"/fixed", "")
	for _, want := range []string{"410 Gone", "Chromium             yes     without limit", "Firefox              yes     without limit", "    Cache-Control: private, no-cache", "    Expires: Thu, 01 Jan 1970 00:00:01 GMT"} {
		if !strings.Contains(bare, want) {
			t.Errorf("it does not say %q:\n%s", want, bare)
		}
	}
	if strings.Contains(fixed, "yes") || strings.Contains(fixed, "Send instead") {
		t.Errorf("of what is mended it says\n%s", fixed)
	}
}

func told(t *testing.T, source, in string) string {
	t.Helper()
	var out strings.Builder
	if err := run([]string{source}, strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestHeads reads what curl prints, the last head of several.
func TestHeads(t *testing.T) {
	for in, want := range map[string]string{
		"HTTP/1.1 410 Gone\r\n\r\nGone, said the page\n":                                   "410 Gone",
		"HTTP/2 404\nCache-Control: max-age=60\n\n":                                        "max-age=60",
		"HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\nHTTP/1.1 200 OK\r\nPragma: no-cache\r\n": "200 OK",
	} {
		file := filepath.Join(t.TempDir(), "head")
		if err := os.WriteFile(file, []byte(in), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, got := range []string{told(t, "-", in), told(t, file, "")} {
			if !strings.Contains(got, want) {
				t.Errorf("%q: %s", in, got)
			}
		}
	}
}

// TestBadInput is told.
func TestBadInput(t *testing.T) {
	for in, want := range map[string]string{"": "no head", "hello\n": `"hello" is no status line`, "HTTP/1.1 200 OK\nnothing\n": `"nothing" is no field`} {
		if err := run([]string{"-"}, strings.NewReader(in), new(strings.Builder)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
	for _, args := range [][]string{nil, {"a", "b"}, {"-x"}, {"/no/such/file"}} {
		if err := run(args, strings.NewReader(""), new(strings.Builder)); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
