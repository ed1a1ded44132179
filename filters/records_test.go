package filters_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// shout turns a record into upper case, and hides those that contain "secret".
func shout(record []byte) ([]byte, error) {
	switch {
	case bytes.Contains(record, []byte("secret")):
		return nil, nil
	case bytes.Contains(record, []byte("broken")):
		return nil, errors.New("broken")
	}
	return bytes.ToUpper(record), nil
}

func recordServer(t *testing.T, rewrite func([]byte) ([]byte, error), handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	f := good(t)(filters.Records(filters.RecordsOptions{MaxRecord: 100, Rewrite: func(*http.Request) func([]byte) ([]byte, error) { return rewrite }}))
	s := wiretest.NewServer(f(handler))
	t.Cleanup(s.Close)
	return s
}

// TestRecords: streams of records and their rewritten forms, however they are written.
func TestRecords(t *testing.T) {
	leaktest.Check(t)
	const lines, events = "application/x-ndjson", "text/event-stream; charset=utf-8"
	for _, test := range []struct{ name, contentType, sent, want string }{
		{"lines", lines, "{\"a\":1}\n{\"secret\":1}\n{\"b\":2}\n", "{\"A\":1}\n{\"B\":2}\n"},
		{"a last line without an end", lines, "{\"a\":1}\r\n{\"b\":2}", "{\"A\":1}\r\n{\"B\":2}"},
		{"empty lines", lines, "\n\r\n{\"a\":1}\n", "\n\r\n{\"A\":1}\n"},
		{"events", events, "event: x\ndata: y\n\ndata: secret\n\ndata: z\n\n", "EVENT: X\nDATA: Y\n\nDATA: Z\n\n"},
		{"events with other line breaks", events, "data: a\r\n\r\ndata: b\r\rdata: c\n\ndata: secret\r\r\n", "DATA: A\r\n\r\nDATA: B\r\rDATA: C\n\n"},
		{"comments", events, ": keep-alive\n\ndata: a\n\n:\n\n", ": keep-alive\n\nDATA: A\n\n:\n\n"},
		{"an event without an end", events, "data: a\n\ndata: secret\n", "DATA: A\n\n"},
		{"another type", "text/plain", "secret\n\n", "secret\n\n"},
		{"a record that can't be rewritten", lines, "{\"a\":1}\nbroken\n{\"b\":2}\n", "{\"A\":1}\n\nBROKEN: unexpected EOF"},
		{"a record over the limit", lines, "{\"a\":1}\n" + strings.Repeat("x", 101) + "\n", "{\"A\":1}\n\nBROKEN: unexpected EOF"},
		{"a record over the limit without an end", lines, "{\"a\":1}\n" + strings.Repeat("x", 101), "{\"A\":1}\n\nBROKEN: unexpected EOF"},
	} {
		for _, size := range []int{1, 7, 1000} {
			s := recordServer(t, shout, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				for rest := test.sent; len(rest) > 0; rest = rest[min(size, len(rest)):] {
					if _, err := io.WriteString(w, rest[:min(size, len(rest))]); err != nil {
						return
					}
				}
			})
			if _, got := wiretest.Get(t, s.URL); string(got) != test.want {
				t.Errorf("%s, in pieces of %d: %q, want %q", test.name, size, got, test.want)
			}
			s.Close()
		}
	}
}

// TestRecordsOneChunkEach: three records that are written at once, without a flush, are sent in
// three chunks.
func TestRecordsOneChunkEach(t *testing.T) {
	leaktest.Check(t)
	s := recordServer(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, "{}\n[1]\n\"x\"\n")
	})
	p := wiretest.Dial(t, s.Listener.Addr().String())
	p.Send("GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
	p.Header()
	if got, want := p.Rest(), "3\r\n{}\n\r\n4\r\n[1]\n\r\n4\r\n\"x\"\n\r\n0\r\n\r\n"; got != want {
		t.Errorf("on the wire %q, want %q", got, want)
	}
}

// TestCompressedRecords: a stream that can't be read is not passed on.
func TestCompressedRecords(t *testing.T) {
	s := recordServer(t, shout, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Error("the request accepts a compressed stream")
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "secret\n")
		_ = z.Close()
	})
	resp, got := wiretest.Get(t, s.URL, "Accept-Encoding", "gzip")
	if resp.StatusCode != 502 || resp.Header.Get("Content-Encoding") != "" || !strings.Contains(string(got), "compressed") {
		t.Errorf("%d %v %q", resp.StatusCode, resp.Header, got)
	}
}

// TestRecordsWithAChecksum: the checksums of the content do not reach the client of a stream, as
// header fields or as trailers.
func TestRecordsWithAChecksum(t *testing.T) {
	s := recordServer(t, shout, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("Content-Digest", "sha-256=:AAAA:")
		w.Header().Set("Trailer", "Repr-Digest, X-End")
		_, _ = io.WriteString(w, "a\n")
		w.Header().Set("Repr-Digest", "sha-256=:AAAA:")
		w.Header().Set("X-End", "1")
	})
	resp, got := wiretest.Get(t, s.URL)
	if digest := resp.Header.Get("Content-Digest") + resp.Trailer.Get("Repr-Digest"); digest != "" || resp.Trailer.Get("X-End") != "1" || string(got) != "A\n" {
		t.Errorf("checksums %q, trailers %v, content %q", digest, resp.Trailer, got)
	}
}

// TestRecordsShorterThanAnnounced: a stream of which the next handler has written less than its
// Content-Length is cut off, even if it ends after a record.
func TestRecordsShorterThanAnnounced(t *testing.T) {
	const record = "{\"a\":1}\n"
	for _, missing := range []int{0, 1} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("without %d, HTTP/%d", missing, version), func(t *testing.T) {
				s := httptest.NewUnstartedServer(good(t)(filters.Records(filters.RecordsOptions{}))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/x-ndjson")
					w.Header().Set("Content-Length", strconv.Itoa(len(record)+missing))
					_, _ = io.WriteString(w, record)
					_ = http.NewResponseController(w).Flush()
				})))
				s.EnableHTTP2 = version == 2
				s.Config.ErrorLog = wiretest.Quiet()
				wiretest.StartTLS(s)
				defer s.Close()
				resp, err := s.Client().Get(s.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if content, err := io.ReadAll(resp.Body); string(content) != record || (err == nil) != (missing == 0) {
					t.Errorf("%q, %v", content, err)
				}
			})
		}
	}
}

// TestRecordsOptions: a negative bound is refused.
func TestRecordsOptions(t *testing.T) {
	bad(t, "filters: RecordsOptions: a negative bound")(filters.Records(filters.RecordsOptions{MaxRecord: -1}))
}

// The filters pass on a request's trailers, which are received at the end of its body.
func TestTrailersOfARequest(t *testing.T) {
	leaktest.Check(t)
	got := make(chan string, 1)
	s := recordServer(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Trailer.Get("X-Sum")
	})
	r, err := http.NewRequest("POST", s.URL, struct{ io.Reader }{strings.NewReader("x")})
	if err != nil {
		t.Fatal(err)
	}
	r.Trailer = http.Header{"X-Sum": {"7"}}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if sum := <-got; sum != "7" {
		t.Errorf("the handler saw %q", sum)
	}
}
