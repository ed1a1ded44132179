package filters_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A stream that has declared that its content is empty, and does not end, is waited for like other content.
func TestTimeoutOfAnEmptyUploadOverHTTP2(t *testing.T) {
	leaktest.Check(t)
	f := good(t)(filters.Timeout(250 * time.Millisecond))
	conn := wiretest.NewFrames(t, f(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the body ends with %v", err)
		}
		<-r.Context().Done()
	})))
	conn.Post(false, "content-length", "0")
	if status := conn.Status(); status != "408" {
		t.Errorf("the client got %s", status)
	}
}
