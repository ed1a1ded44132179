package memcached_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/memcached"
)

func key(*http.Request) string { return "a b" }

func read(text string) (status int, body string, reusable bool, err error) {
	resp, kept, err := memcached.Protocol(memcached.Options{Key: key, GzipFlag: 2}).ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
	if err != nil {
		return 0, "", false, err
	}
	b, err := io.ReadAll(resp.Body)
	if resp.Header.Get("Content-Encoding") != "" {
		b = append(b, " gzip"...)
	}
	return resp.StatusCode, string(b), kept(), err
}

func TestReadResponse(t *testing.T) {
	for text, want := range map[string]string{
		"VALUE a%20b 0 5\r\nhello\r\nEND\r\n": "hello", "VALUE a%20b 3 2\r\nhi\r\nEND\r\n": "hi gzip", "VALUE a%20b 0 0\r\n\r\nEND\r\n": "", "END\r\n": "",
	} {
		status, body, reusable, err := read(text)
		if wanted := map[bool]int{true: 404, false: 200}[text == "END\r\n"]; status != wanted || body != want || !reusable || err != nil {
			t.Errorf("%q: %d, %q, %v, %v", text, status, body, reusable, err)
		}
	}
	for _, text := range []string{"", "END", "VALUE x 0 5\r\nhello\r\nEND\r\n", "VALUE a%20b 0 -5\r\n", "VALUE a%20b x 5\r\n", "ERROR\r\n", "VALUE a%20b 0 5\r\nhellothere\r\n", "VALUE a%20b 0 5\r\nhel"} {
		if status, body, reusable, err := read(text); err == nil || reusable {
			t.Errorf("%q: %d, %q, %v", text, status, body, reusable)
		}
	}
}

// A key can't be more than a key.
func TestPrepare(t *testing.T) {
	for key, want := range map[string]string{"k": "get k\r\n", "a\r\nflush_all": "get a%0D%0Aflush_all\r\n", "": "", strings.Repeat("x", 251): ""} {
		write, err := memcached.Protocol(memcached.Options{Key: func(*http.Request) string { return key }}).Prepare(nil)
		if want == "" {
			if err == nil {
				t.Errorf("%q is a key", key)
			}
			continue
		}
		var b strings.Builder
		w := bufio.NewWriter(&b)
		if err := write(w); err != nil || w.Flush() != nil || b.String() != want {
			t.Errorf("%q: %q, %v", key, b.String(), err)
		}
	}
}

func FuzzReadResponse(f *testing.F) {
	f.Add("VALUE a%20b 0 5\r\nhello\r\nEND\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, body, reusable, err := read(text)
		if len(body) > len(text)+len(" gzip") || reusable && (err != nil || !strings.Contains(text, "END\r\n")) {
			t.Errorf("%q, %v, %v", body, reusable, err)
		}
	})
}
