package filters_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// brokenFile is a file that can't be read to its end.
type brokenFile struct {
	*bytes.Reader
	good int64
}

func (f brokenFile) Read(p []byte) (int, error) {
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil || at >= f.good {
		return 0, errors.Join(err, errors.New("input/output error"))
	}
	return f.Reader.Read(p[:min(int64(len(p)), f.good-at)])
}

// A file of which http.ServeContent could read only a part, which it does not report, does not look complete to the client
// of a filter that changes its length.
func TestFileThatIsCutOffInsideAFilter(t *testing.T) {
	leaktest.Check(t)
	page := bytes.Repeat([]byte("page "), 2000)
	member := zipped(t, "half")
	for name, test := range map[string]struct {
		filter   culvert.Filter
		content  []byte
		good     int
		encoding string
	}{
		"compressed":            {good(t)(filters.Compress(filters.CompressOptions{})), page, 4000, ""},
		"compressed, no byte":   {good(t)(filters.Compress(filters.CompressOptions{})), page, 0, ""},
		"decompressed":          {good(t)(filters.Decompress(filters.DecompressOptions{Responses: true})), slices.Concat(member, member), len(member), "gzip"},
		"decompressed, no byte": {good(t)(filters.Decompress(filters.DecompressOptions{Responses: true})), member, 0, "gzip"},
	} {
		for _, whole := range []bool{true, false} {
			for _, version := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s, whole %v, HTTP/%d", name, whole, version), func(t *testing.T) {
					s := httptest.NewUnstartedServer(test.filter(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if test.encoding != "" {
							w.Header().Set("Content-Encoding", test.encoding)
							w.Header().Set("Content-Length", fmt.Sprint(len(test.content)))
						}
						good := test.good
						if whole {
							good = len(test.content)
						}
						http.ServeContent(w, r, "page.txt", time.Time{}, brokenFile{bytes.NewReader(test.content), int64(good)})
					})))
					s.EnableHTTP2 = version == 2
					s.Config.ErrorLog = wiretest.Quiet()
					wiretest.StartTLS(s)
					defer s.Close()
					resp, err := s.Client().Get(s.URL)
					var content []byte
					if err == nil {
						content, err = io.ReadAll(resp.Body)
						resp.Body.Close()
					}
					if (err == nil) != whole {
						t.Errorf("%d bytes, %v", len(content), err)
					}
				})
			}
		}
	}
}
