package cgi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/fieldnames"
)

func TestReadHeader(t *testing.T) {
	for text, want := range map[string]int{
		"A: b\n\n": 200, "\r\n": 200, "Status: 404\r\n\r\n": 404, "Location: /\n\n": 302, "Status: 200\nLocation: /\n\n": 200,
		"HTTP/1.0 503 Busy\r\nA: b\r\n\r\n": 503, "HTTP/1.1 503\nStatus: 200\n\n": 503,
	} {
		resp, err := ReadHeader(t.Context(), bufio.NewReader(strings.NewReader(text)), true)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%q: %v, %v", text, resp, err)
		}
	}
	for _, text := range []string{"", "A: b\n", "A\n\n", " A: b\n\n", "HTTP/1.1 abc\n\n", "HTTP/1.1 101\n\n", "Status: 99\n\n", "A: b\x00\n\n", "Content-Length: 1\nContent-Length: 1\n\n"} {
		if resp, err := ReadHeader(t.Context(), bufio.NewReader(strings.NewReader(text)), true); err == nil {
			t.Errorf("%q: %v", text, resp)
		}
	}
	if _, err := ReadHeader(t.Context(), bufio.NewReader(strings.NewReader("HTTP/1.1 200\n\n")), false); err == nil {
		t.Error("a status line where there is none")
	}
}

func TestFields(t *testing.T) {
	r := &http.Request{Host: "h", Header: http.Header{"X-A": {"1", "2"}, "Cookie": {"a", "b"}, "Proxy": {"evil"}, "X-B": {"3"}, "Host": {"i"}}}
	got := map[string]string{}
	for _, p := range Fields(r, nil, map[string]bool{"x_b": true}) {
		got[p.Name] = p.Value
	}
	if len(got) != 2 || got["HTTP_X_A"] != "1, 2" || got["HTTP_COOKIE"] != "a; b" {
		t.Errorf("%v", got)
	}
}

// They are in the order in which the client has sent them, with what the request says elsewhere.
func TestFieldsInOrder(t *testing.T) {
	r := &http.Request{Host: "h", Header: http.Header{"X-A": {"1", "2"}, "Z": {"3"}, "B": {"4"}, "Connection": {"Upgrade"}}}
	named := r.WithContext(context.WithValue(t.Context(), fieldnames.Key{}, &fieldnames.List{"z", "x-a", "connection", "HOST", "X-A", "Transfer-Encoding", "gone"}))
	for _, test := range []struct {
		r          *http.Request
		connection []string
		want       string
	}{
		{named, []string{"close"}, "[{HTTP_Z 3} {HTTP_X_A 1, 2} {HTTP_CONNECTION close} {HTTP_TRANSFER_ENCODING chunked} {HTTP_B 4}]"},
		{r, nil, "[{HTTP_B 4} {HTTP_X_A 1, 2} {HTTP_Z 3}]"},
	} {
		if got := fmt.Sprint(Fields(test.r, test.connection, nil)); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func FuzzReadHeader(f *testing.F) {
	f.Add("Status: 404 x\r\nA: b\r\n\r\nbody", true)
	f.Add("HTTP/1.1 200 OK\nContent-Length: 2\n\nbody", true)
	f.Fuzz(func(t *testing.T, text string, line bool) {
		b := bufio.NewReader(strings.NewReader(text))
		resp, err := ReadHeader(t.Context(), b, line)
		if err != nil {
			return
		}
		if resp.StatusCode < 200 || resp.StatusCode > 999 {
			t.Errorf("status %d", resp.StatusCode)
		}
		body, err := io.ReadAll(Body(resp, b))
		if resp.ContentLength >= 0 && (err == nil) != (int64(len(body)) == resp.ContentLength) {
			t.Errorf("%d bytes of %d, %v", len(body), resp.ContentLength, err)
		}
	})
}
