package view_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// TestLongestWatch: the longest duration that a client can request does not end a watch at once.
func TestLongestWatch(t *testing.T) {
	leaktest.Check(t)
	server, p := aThing(t)
	views := newViews(t, view.Options{}, p)
	defer views.Close()
	s := wiretest.NewServer(views.Filter(server))
	defer s.Close()
	resp, err := http.Get(s.URL + collectionPath + "?watch=1&timeoutSeconds=9223372036854775807")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got := make([]byte, 64)
	if n, err := resp.Body.Read(got); err != nil || !strings.HasPrefix(string(got[:n]), `{"type":"ADDED"`) {
		t.Errorf("the first event is %q: %v", got[:n], err)
	}
	server.Set(thing("b", [3]string{"sky", "", "0"}))
	rest := ""
	for !strings.Contains(rest, `"name":"b"`) {
		n, err := resp.Body.Read(got)
		if rest += string(got[:n]); err != nil {
			t.Fatalf("the watch ends after %q: %v", rest, err)
		}
	}
}
