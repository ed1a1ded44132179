package watchcodec_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// gzipped compresses pieces, each of which can be inflated when it was received.
func gzipped(pieces ...string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, piece := range pieces {
		_, _ = io.WriteString(z, piece)
		_ = z.Flush()
	}
	_ = z.Close()
	return b.Bytes()
}

// fetched returns what a client receives through the filter for content that is cut or corrupted,
// over one version of HTTP.
func fetched(t *testing.T, version int, path string, content []byte, abort bool) (status int, body string, err error) {
	t.Helper()
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_ = http.NewResponseController(w).Flush()
		for len(content) > 0 { // as a proxy does, which aborts if a write fails
			n, err := w.Write(content[:min(len(content), 50)])
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			content = content[n:]
		}
		if abort {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	s := httptest.NewUnstartedServer(showing(true)(next))
	s.EnableHTTP2 = version == 2
	s.Config.ErrorLog = wiretest.Quiet()
	wiretest.StartTLS(s)
	defer s.Close()
	resp, err := s.Client().Get(s.URL + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// The client of a watch whose compression is cut or corrupted receives the events before that and
// the ERROR event that the client of an uncompressed watch receives.
func TestCompressedWatchThatIsCut(t *testing.T) {
	leaktest.Check(t)
	one, two := pod("ADDED", "a", "yes", "1")+"\n", pod("ADDED", "b", "yes", "2")+"\n"
	whole, first := gzipped(one, two), gzipped(one)
	boundary := bytes.Index(whole, []byte{0, 0, 0xff, 0xff}) + 4 // after the flush of the first event
	corrupt := append(bytes.Clone(whole[:boundary]), bytes.Repeat([]byte{0xff}, 100)...)
	checksum := bytes.Clone(first)
	checksum[len(checksum)-5]++
	for name, test := range map[string]struct {
		content []byte
		abort   bool
		events  int // before the ERROR event
		failed  bool
		cut     bool // the response is cut off
	}{
		"whole":                       {whole, false, 2, false, false},
		"of no byte":                  {nil, false, 0, false, false},
		"cut in the first header":     {whole[:5], false, 0, true, false},
		"cut in an event":             {whole[:boundary-6], false, 0, true, false},
		"cut after an event":          {whole[:boundary], false, 1, true, false},
		"cut in the checksum":         {whole[:len(whole)-3], false, 2, true, false},
		"in two members, cut":         {append(bytes.Clone(first), whole[:boundary]...), false, 2, true, false},
		"corrupt":                     {corrupt, false, 1, true, true},
		"with another checksum":       {checksum, false, 1, true, true},
		"with no member after it":     {append(bytes.Clone(first), "no member, but text"...), false, 1, true, true},
		"aborted":                     {whole[:boundary], true, 1, false, true},
		"whole, and half an event":    {gzipped(one, two[:20]), false, 1, true, false},
		"whole, with what is no JSON": {gzipped(one, "no"), false, 1, true, true},
	} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, HTTP/%d", name, version), func(t *testing.T) {
				status, body, err := fetched(t, version, carpsPath+"?watch=1", test.content, test.abort)
				if status != http.StatusOK || (err != nil) != test.cut {
					t.Errorf("%d, %v, want it cut: %v", status, err, test.cut)
				}
				failed := strings.Contains(body, `{"type":"ERROR","object":{"kind":"Status"`)
				if n := strings.Count(body, `"ADDED"`); n != test.events || failed != test.failed || body != "" && !strings.HasSuffix(body, "\n") {
					t.Errorf("%d events, an ERROR event %v: %q, want %d, %v", n, failed, body, test.events, test.failed)
				}
			})
		}
	}
}

// A list whose compression is cut or corrupted is a 502 if nothing of it was sent, and is cut off
// otherwise.
func TestCompressedListThatIsCut(t *testing.T) {
	leaktest.Check(t)
	start, end := `{"kind":"CarpList","apiVersion":"mygroup.example.com/v1","metadata":{},"items":[`+carp, "]}\n"
	whole := gzipped(start, end)
	checksum := bytes.Clone(whole)
	checksum[len(checksum)-5]++
	for name, test := range map[string]struct {
		content []byte
		status  int // 0 for a response that is cut off
	}{
		"whole":                 {whole, http.StatusOK},
		"cut in the header":     {whole[:5], http.StatusBadGateway},
		"no gzip":               {[]byte("no gzip at all"), http.StatusBadGateway},
		"cut after a part":      {gzipped(start)[:len(gzipped(start))-12], 0},
		"cut in the checksum":   {whole[:len(whole)-3], 0},
		"with another checksum": {checksum, 0},
	} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, HTTP/%d", name, version), func(t *testing.T) {
				status, body, err := fetched(t, version, carpsPath, test.content, false)
				if test.status == 0 && err == nil || test.status != 0 && (status != test.status || err != nil) {
					t.Errorf("%d %q, %v, want %d", status, body, err, test.status)
				}
			})
		}
	}
}
