package watchcodec_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// TestPagesHaveResultsOfTheirOwn: each page of the list that a resumed watch needs is a separate
// exchange for handlers behind the filter that record exchanges.
func TestPagesHaveResultsOfTheirOwn(t *testing.T) {
	requests := 0
	gateway := withTables(t, seen, func(w http.ResponseWriter, r *http.Request) {
		requests++
		_, record := record.With(r.Context())
		if len(record.Attempts) > 0 {
			t.Errorf("%s begins with the attempts %+v", r.URL, record.Attempts)
		}
		record.StartAttempt("10.0.0.1:80", time.Now())
		record.HeaderReceived(http.StatusOK)
		record.FinishAttempt(culvert.Attempt{Target: "10.0.0.1:80"})
		w.Header().Set("Content-Type", "application/json")
		more, name := `,"continue":"rest"`, "had"
		switch query := r.URL.Query(); {
		case query.Has("watch"):
			_, _ = io.WriteString(w, pod("MODIFIED", "unseen", "no", "8")+pod("MODIFIED", "had", "no", "9"))
			return
		case query.Has("continue"):
			more, name = "", "unseen"
		}
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"`+more+`},"items":[`+item(name, strings.ReplaceAll(strings.ReplaceAll(name, "unseen", "no"), "had", "yes"))+`]}`)
	})
	_, got := wiretest.Get(t, gateway.URL+"/api/v1/pods?watch=1&resourceVersion=7", "Accept", "application/json")
	if string(got) != gone("had", "9") || requests != 3 {
		t.Errorf("%d requests, the client receives\n%s", requests, got)
	}
}
