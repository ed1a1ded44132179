package wsupgrade

import (
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/fieldnames"
)

// A name that is none does not split the header of a tunnel's response, whatever list it is in.
func TestInvalidNameIsNotWritten(t *testing.T) {
	const name = "X-A: b\r\nX-Split"
	for _, names := range []fieldnames.List{nil, {"x-kept"}, {name, "x-kept"}} {
		fields := func() http.Header { return http.Header{name: {"c"}, "X-Kept": {"d\r\ne"}} }
		kept := "X-Kept: d  e\r\n\r\n"
		if names != nil {
			kept = "x-kept: d  e\r\n\r\n"
		}
		f := fieldnames.Format{Names: names}
		if got, want := connectedHeader(fields(), f).String(), "HTTP/1.1 200 Connection Established\r\n"+kept; got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
		if got, want := switchingHeader(fields(), "", f).String(), "HTTP/1.1 101 Switching Protocols\r\n"+kept; got != want {
			t.Errorf("%q: %q, want %q", names, got, want)
		}
	}
}
