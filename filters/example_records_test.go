package filters_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/culvert-go/culvert/filters"
)

// A stream of lines of JSON loses those that are for internal use. Each other line is sent at once,
// even if the handler does not flush.
func ExampleRecords() {
	public, err := filters.Records(filters.RecordsOptions{
		Rewrite: func(*http.Request) func([]byte) ([]byte, error) {
			return func(record []byte) ([]byte, error) {
				if bytes.Contains(record, []byte(`"internal":true`)) {
					return nil, nil
				}
				return record, nil
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	h := public(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = io.WriteString(w, "{\"n\":1}\n{\"n\":2,\"internal\":true}\n{\"n\":3}\n")
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Print(w.Body)
	// Output:
	// {"n":1}
	// {"n":3}
}
