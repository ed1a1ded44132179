package source_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// A list that is not read to its end is not a failure of the client in a proxy that fetches it.
func TestListThatIsNotReadBehindAProxy(t *testing.T) {
	for name, test := range map[string]struct {
		contentType, list string
		take              error
	}{
		"no list":            {"application/json", "no list", nil},
		"in a form not read": {"text/html", "no list", nil},
		"not taken":          {"application/json", list("5", "", "a"), errors.New("refused")},
	} {
		t.Run(name, func(t *testing.T) {
			target := wiretest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				_, _ = io.WriteString(w, test.list)
			}))
			defer target.Close()
			group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: target.Listener.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			defer group.Close()
			var kinds []culvert.ErrorKind
			p, err := proxy.New(proxy.Options{Upstream: group, OnError: func(_ *http.Request, e *culvert.Error) { kinds = append(kinds, e.Kind) }})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = source.List(t.Context(), p, httptest.NewRequest("GET", "/api/v1/things", nil), func(*watchcodec.Object) error { return test.take })
			if err == nil || test.take != nil && !errors.Is(err, test.take) {
				t.Errorf("List returned %v", err)
			}
			if len(kinds) != 1 || kinds[0] != culvert.Internal {
				t.Errorf("OnError is called with %v, want one %v", kinds, culvert.Internal)
			}
		})
	}
}
