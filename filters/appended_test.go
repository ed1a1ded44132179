package filters_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A function that appends to the record that it is called with does not write into what follows it.
func TestRecordsAppend(t *testing.T) {
	leaktest.Check(t)
	appending := func(record []byte) ([]byte, error) { return append(record, "...."...), nil }
	for contentType, test := range map[string][2]string{
		"application/x-ndjson": {"one\ntwo\r\nthree", "one....\ntwo....\r\nthree...."},
		"text/event-stream":    {"data: a\n\ndata: b\r\n\r\ndata: c\n\n", "data: a....\n\ndata: b....\r\n\r\ndata: c....\n\n"},
	} {
		s := recordServer(t, appending, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, test[0])
		})
		if _, got := wiretest.Get(t, s.URL); string(got) != test[1] {
			t.Errorf("%s: received %q, want %q", contentType, got, test[1])
		}
	}
}
