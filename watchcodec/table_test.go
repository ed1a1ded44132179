package watchcodec_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// withTables serves handler behind a filter with the option Tables.
func withTables(t *testing.T, rewrite watchcodec.Rewriter, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	f, err := watchcodec.NewFilter(watchcodec.FilterOptions{Tables: true, Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return rewrite }})
	if err != nil {
		t.Fatal(err)
	}
	s := wiretest.NewServer(f(handler))
	t.Cleanup(s.Close)
	return s
}

func isTable(r recording) bool {
	return strings.Contains(r.accept, "json;as=Table") && r.status == "200" && !strings.Contains(r.target, "limit=") && !strings.Contains(r.target, "includeObject=None")
}

// TestTablesThroughTheFilter: Tables of a real kube-apiserver pass byte for byte if no object is
// hidden.
func TestTablesThroughTheFilter(t *testing.T) {
	for _, r := range recorded(t, isTable) {
		s := withTables(t, seeAll, replay(t, r, 1009))
		_, got := wiretest.Get(t, s.URL+r.target, "Accept", r.accept)
		s.Close()
		if want := r.body(t); string(got) != string(want) {
			t.Errorf("%s: %d bytes, the server sent %d; the end is %q", r.name, len(got), len(want), got[max(0, len(got)-200):])
		}
	}
}

// TestTableRowsFiltered: of each recorded Table the rows are left whose objects are visible.
func TestTableRowsFiltered(t *testing.T) {
	type table struct {
		ColumnDefinitions []any
		Rows              []struct {
			Cells  []any
			Object struct{ Metadata struct{ Name string } }
		}
	}
	for _, r := range recorded(t, func(r recording) bool { return isTable(r) && strings.HasPrefix(r.name, "list/") }) {
		s := withTables(t, notEven, replay(t, r, 4096))
		_, got := wiretest.Get(t, s.URL+r.target, "Accept", r.accept)
		s.Close()
		var is, was table
		if err := json.Unmarshal(got, &is); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		if err := json.Unmarshal(r.body(t), &was); err != nil {
			t.Fatal(err)
		}
		want := was.Rows[:0]
		for _, row := range was.Rows {
			if name := row.Object.Metadata.Name; !strings.ContainsRune("02468", rune(name[len(name)-1])) {
				want = append(want, row)
			}
		}
		if fmt.Sprint(is.Rows) != fmt.Sprint(want) || len(is.ColumnDefinitions) != len(was.ColumnDefinitions) {
			t.Errorf("%s: %d rows, want %d of %d", r.name, len(is.Rows), len(want), len(was.Rows))
		}
	}
}

// tableOf returns an event of a Table with one row.
func tableOf(kind, columns, name, seen string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"columnDefinitions":%s,"rows":[{"cells":[%q,"secret"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":%q,"uid":"u","resourceVersion":"1","labels":{"seen":%q}}}}]}}`, kind, columns, name, name, seen) + "\n"
}

// TestTableTransitions: a watch of Tables sends events for objects that become visible or hidden,
// no cell of a hidden one, and the columns with the first event that it sends, though the server
// has sent them with another.
func TestTableTransitions(t *testing.T) {
	columns := `[{"name":"Name"},{"name":"Secret"}]`
	s := withTables(t, seen, func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); accept != "application/json;as=Table;v=v1;g=meta.k8s.io, application/json" {
			t.Errorf("the request accepts %s", accept)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, tableOf("ADDED", columns, "a", "no")+tableOf("ADDED", "null", "b", "yes")+tableOf("MODIFIED", "null", "a", "yes")+tableOf("MODIFIED", "null", "b", "no"))
	})
	_, got := wiretest.Get(t, s.URL+"/api/v1/pods?watch=1", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	gone := `{"type":"DELETED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"columnDefinitions":null,"rows":[{"cells":["b"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"b","uid":"u","resourceVersion":"1"}}}]}}` + "\n"
	if want := tableOf("ADDED", columns, "b", "yes") + tableOf("ADDED", "null", "a", "yes") + gone; string(got) != want {
		t.Errorf("the client receives\n%swant\n%s", got, want)
	}
}

// TestTableWithoutObjects: a client that requests rows without objects receives none, and the
// filter has them all the same.
func TestTableWithoutObjects(t *testing.T) {
	whole := `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[],"rows":[%s]}`
	rowOf := func(name, seen string) string {
		return fmt.Sprintf(`{"cells":[%q],"object":{"metadata":{"name":%q,"labels":{"seen":%q}}}}`, name, name, seen)
	}
	s := withTables(t, seen, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("includeObject"); got != "Metadata" {
			t.Errorf("the request has includeObject=%s", got)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, whole, rowOf("a", "no")+", "+rowOf("b", "yes"))
	})
	accept := "application/json;as=Table;v=v1;g=meta.k8s.io"
	for _, path := range []string{"/api/v1/pods?includeObject=None", "/api/v1/namespaces/n/pods/b?includeObject=None"} {
		if _, got := wiretest.Get(t, s.URL+path, "Accept", accept); strings.ReplaceAll(string(got), " ", "") != fmt.Sprintf(whole, `{"cells":["b"],"object":null}`) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestTableWatchWithoutObjects: a client of a watch that requests rows without objects receives
// none, neither in the row of an object that has become hidden.
func TestTableWatchWithoutObjects(t *testing.T) {
	s := withTables(t, seen, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, tableOf("ADDED", "null", "a", "yes")+tableOf("MODIFIED", "null", "a", "no")+tableOf("ADDED", "null", "b", "yes"))
	})
	_, got := wiretest.Get(t, s.URL+"/api/v1/pods?watch=1&includeObject=None", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if n := strings.Count(string(got), `"object":null`); n != 3 || strings.Contains(string(got), "uid") {
		t.Errorf("the client receives\n%s", got)
	}
}

// TestMalformedTables: a Table whose rows can't be told apart, or that decoders would not agree on, is not passed on.
func TestMalformedTables(t *testing.T) {
	const shown, hidden = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a1"}}`, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a2","uid":"secret"}}`
	for name, rows := range map[string]string{
		"two objects":            `"rows":[{"cells":[],"object":` + hidden + `,"object":` + shown + `}]`,
		"two objects, escaped":   `"rows":[{"cells":[],"obj\u0065ct":` + hidden + `,"object":` + shown + `}]`,
		"an object in capitals":  `"rows":[{"cells":[],"object":` + shown + `,"Object":` + hidden + `}]`,
		"no comma":               `"rows":[{"cells":[],"object":` + shown + `}{"cells":[],"object":` + shown + `}]`,
		"rows in capitals":       `"rows":[],"Rows":[{"cells":[],"object":` + hidden + `}]`,
		"rows with a long s":     `"row\u017f":[{"cells":[],"object":` + hidden + `}]`,
		"two lists, one escaped": `"rows":[],"r\u006fws":[{"cells":[],"object":` + hidden + `}]`,
	} {
		table := `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],` + rows + `}`
		for path, status := range map[string]int{"/api/v1/namespaces/n/pods/a1": 502, "/api/v1/pods": 502, "/api/v1/pods?watch=1": 200} {
			sent := table
			if status == 200 {
				sent = `{"type":"ADDED","object":` + table + "}\n"
			}
			s := withTables(t, notEven, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, sent)
			})
			resp, got := wiretest.Get(t, s.URL+path, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
			if resp.StatusCode != status || !strings.Contains(string(got), " read") || strings.Contains(string(got), "secret") {
				t.Errorf("%s, %s: %d %s", name, path, resp.StatusCode, got)
			}
			s.Close()
		}
	}
}
