package watchcodec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/watchtest"
)

// past serves a watch, and lists of the state before it.
type past struct {
	t           *testing.T
	watch, list string
	status      int
	mu          sync.Mutex
	lists       []string
}

func (p *past) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.Contains(r.URL.RawQuery, "watch=1") || strings.Contains(r.URL.Path, "/watch/") {
		_, _ = io.WriteString(w, p.watch)
		return
	}
	w.(http.Flusher).Flush() // many handlers flush without checking that they can
	p.mu.Lock()
	p.lists = append(p.lists, r.URL.Path+"?"+r.URL.RawQuery+" "+r.Header.Get("Accept")+" as "+r.Header.Get("Authorization"))
	p.mu.Unlock()
	if p.status != 0 {
		w.WriteHeader(p.status)
	}
	if _, err := io.WriteString(w, p.list); err != nil && p.status == 0 {
		p.t.Error(err)
	}
}

// item is the object of an event that pod returns, as an item of a list.
func item(name, seen string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"n","uid":"u-%s","labels":{"seen":%q}}}`, name, name, seen)
}

// TestResumedWatch: a client that resumes a watch receives an event for an object that becomes
// hidden if it has seen the object, and none for one that it has not.
func TestResumedWatch(t *testing.T) {
	const expired = `"code":410`
	list := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` + item("had", "yes") + `,` + item("unseen", "no") + `]}`
	tables := `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[],"rows":[{"cells":["b"],"object":{"metadata":{"name":"b","labels":{"seen":"yes"}}}}]}`
	const query = "labelSelector=a%3Db&limit=500&resourceVersion=7&resourceVersionMatch=Exact"
	for _, test := range []struct {
		name, target, sent, list, want string
		status                         int
		lists                          string // what the filter requests
	}{
		{"an object that it has", "/api/v1/pods?watch=1&labelSelector=a%3Db&resourceVersion=7", pod("MODIFIED", "had", "no", "8"), list, gone("had", "8"), 0, "/api/v1/pods?" + query},
		{"one that it has not", "/api/v1/pods?watch=1&labelSelector=a%3Db&resourceVersion=7", pod("MODIFIED", "unseen", "no", "8"), list, "", 0, "/api/v1/pods?" + query},
		{"both, many times", "/api/v1/namespaces/n/pods?watch=1&labelSelector=a%3Db&resourceVersion=7",
			strings.Repeat(pod("MODIFIED", "unseen", "no", "8"), 3) + pod("MODIFIED", "had", "no", "9") + pod("MODIFIED", "had", "no", "10") + pod("MODIFIED", "unseen", "yes", "11"), list,
			gone("had", "9") + pod("ADDED", "unseen", "yes", "11"), 0, "/api/v1/namespaces/n/pods?" + query},
		{"one that becomes visible after the list", "/api/v1/pods?watch=1&labelSelector=a%3Db&resourceVersion=7",
			pod("MODIFIED", "other", "no", "8") + pod("MODIFIED", "unseen", "yes", "11") + pod("MODIFIED", "had", "yes", "12"), list,
			pod("ADDED", "unseen", "yes", "11") + pod("MODIFIED", "had", "yes", "12"), 0, "/api/v1/pods?" + query},
		{"at the version that the watch has reached", "/api/v1/pods?watch=1&resourceVersion=5", pod("ADDED", "a", "yes", "6") + `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7"}}}` + "\n" + pod("MODIFIED", "unseen", "no", "8"), list,
			pod("ADDED", "a", "yes", "6") + `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7"}}}` + "\n", 0, "/api/v1/pods?limit=500&resourceVersion=7&resourceVersionMatch=Exact"},
		{"the legacy path", "/apis/x/v1/watch/namespaces/n/pods/had?resourceVersion=7", pod("MODIFIED", "had", "no", "8"), list, gone("had", "8"), 0, "/apis/x/v1/namespaces/n/pods?fieldSelector=metadata.name%3Dhad&limit=500&resourceVersion=7&resourceVersionMatch=Exact"},
		{"an object in the place of the list", "/api/v1/pods?watch=1&resourceVersion=7", pod("MODIFIED", "unseen", "no", "9"), `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x"}}`, expired, 200, "/api/v1/pods?limit=500&resourceVersion=7&resourceVersionMatch=Exact"},
		{"a list that is refused", "/api/v1/pods?watch=1&resourceVersion=7", pod("ADDED", "a", "yes", "8") + pod("MODIFIED", "unseen", "no", "9"), "", expired, 410, "/api/v1/pods?limit=500&resourceVersion=8&resourceVersionMatch=Exact"},
		{"half a list", "/api/v1/pods?watch=1&resourceVersion=7", pod("MODIFIED", "had", "no", "9"), list[:len(list)-3], expired, 0, "/api/v1/pods?limit=500&resourceVersion=7&resourceVersionMatch=Exact"},
		{"objects seen only", "/api/v1/pods?watch=1&resourceVersion=7", pod("MODIFIED", "a", "yes", "8") + pod("DELETED", "a", "yes", "9") + pod("DELETED", "unseen", "no", "10"), "", pod("MODIFIED", "a", "yes", "8") + pod("DELETED", "a", "yes", "9"), 0, ""},
		{"all objects first", "/api/v1/pods?watch=1&resourceVersion=7&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", pod("MODIFIED", "unseen", "no", "8"), "", "", 0, ""},
		{"from any version", "/api/v1/pods?watch=1&resourceVersion=0", pod("MODIFIED", "unseen", "no", "8"), "", "", 0, ""},
		{"rows of a Table", "/api/v1/pods?watch=1&resourceVersion=7&includeObject=None", tableOf("MODIFIED", "[]", "unseen", "no") + tableOf("MODIFIED", "null", "b", "no"), tables, `"cells":["b"],"object":null`, 0, "/api/v1/pods?includeObject=Metadata&limit=500&resourceVersion=7&resourceVersionMatch=Exact"},
	} {
		server := &past{t: t, watch: test.sent, list: test.list, status: test.status}
		gateway := withTables(t, seen, server.ServeHTTP)
		accept := "application/json"
		if test.list == tables {
			accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
		}
		_, got := wiretest.Get(t, gateway.URL+test.target, "Accept", accept, "Authorization", "Bearer client")
		gateway.Close()
		whole := string(got) == test.want || (test.want == expired || test.list == tables) && strings.Contains(string(got), test.want)
		if !whole || strings.Contains(strings.ReplaceAll(string(got), pod("ADDED", "unseen", "yes", "11"), ""), "unseen") {
			t.Errorf("%s: the client receives\n%swant\n%s", test.name, got, test.want)
		}
		lists := strings.Join(server.lists, "\n")
		if test.lists != "" {
			test.lists += " " + strings.ReplaceAll(accept, ",", ", ") + " as Bearer client"
		}
		if lists != test.lists {
			t.Errorf("%s: the filter requested\n%s\nwant\n%s", test.name, lists, test.lists)
		}
	}
}

// TestResumedVisibleWithoutList: without a list the watch ends, and sends nothing.
func TestResumedVisibleWithoutList(t *testing.T) {
	v := watchcodec.NewResumedVisibility(seen, "7", nil)
	var e watchcodec.Event
	if err := e.Decode(watchcodec.JSON, []byte(strings.TrimSpace(pod("MODIFIED", "a", "no", "8")))); err != nil {
		t.Fatal(err)
	}
	if send, err := v.Apply(&e); send || !errors.Is(err, watchcodec.ErrUnknownState) {
		t.Errorf("send is %v, %v", send, err)
	}
}

// watcher is a client that lists, watches, and resumes where it was.
type watcher struct {
	t       *testing.T
	h       http.Handler
	query   string // of its first watch, "" to list
	vague   bool   // its first events do not show which version it has: it may be a newer one
	store   map[string]string
	version string
	expired int
}

type podEvent struct {
	Type   string
	Object struct {
		Code     int
		Metadata struct{ Name, ResourceVersion string }
	}
}

func (w *watcher) get(query string) io.Reader {
	recorder := httptest.NewRecorder()
	func() {
		defer func() { _ = recover() }() // the filter aborts a response that it can't end otherwise
		w.h.ServeHTTP(recorder, httptest.NewRequest("GET", "/api/v1/pods?"+query, nil))
	}()
	return recorder.Body
}

// round lists if it has to, and watches for a while.
func (w *watcher) round() {
	query := "watch=1&timeoutSeconds=7&resourceVersion=" + w.version
	if w.version == "" {
		w.store = map[string]string{}
		if query = w.query; query == "" {
			var list struct {
				Metadata struct{ ResourceVersion string }
				Items    []struct {
					Metadata struct{ Name, ResourceVersion string }
				}
			}
			if err := json.NewDecoder(w.get("")).Decode(&list); err != nil {
				w.t.Error(err)
			}
			for _, item := range list.Items {
				w.store[item.Metadata.Name] = item.Metadata.ResourceVersion
			}
			w.version = list.Metadata.ResourceVersion
			return
		}
	}
	events := json.NewDecoder(w.get(query))
	for events.More() {
		var e podEvent
		if err := events.Decode(&e); err != nil {
			w.t.Error(err)
			return
		}
		name := e.Object.Metadata.Name
		_, has := w.store[name]
		switch {
		case e.Type == "ERROR":
			if e.Object.Code != http.StatusGone {
				w.t.Errorf("an ERROR of %d", e.Object.Code)
			}
			w.expired++
			w.version = ""
			return
		case e.Type == "DELETED" && !has && w.vague:
			// It may have been seen at the version that this client says it has.
		case e.Type == "DELETED" && !has:
			w.t.Errorf("the name %s reaches a client that has not seen it", name)
		case e.Type == "DELETED":
			delete(w.store, name)
		case e.Type != "BOOKMARK":
			w.store[name] = e.Object.Metadata.ResourceVersion
		}
		// The first events are in no order. A client that goes back to an older version has the
		// state of that version.
		if older, _ := strconv.Atoi(w.version); older < number(w.t, e.Object.Metadata.ResourceVersion) {
			w.version = e.Object.Metadata.ResourceVersion
		}
	}
}

func number(t *testing.T, version string) int {
	n, err := strconv.Atoi(version)
	if err != nil {
		t.Error(err)
	}
	return n
}

// TestClientsOfHiddenObjects: however objects change while clients connect and disconnect, each
// client ends with the objects that it may see, and no DELETED event names an object that it has
// not seen. Few lists are needed for it.
func TestClientsOfHiddenObjects(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { playHidden(t, rand.New(rand.NewPCG(seed, 10)), seed%4 == 3) })
	}
}

func playHidden(t *testing.T, rnd *rand.Rand, compacts bool) {
	server, err := watchtest.New(watchtest.Options{Resource: "pods", Kind: "Pod", APIVersion: "v1", JSON: unstructured.UnstructuredJSONScheme})
	if err != nil {
		t.Fatal(err)
	}
	filter, err := watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return seen }})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	change := func() {
		name := fmt.Sprint("p", rnd.IntN(12))
		delete(want, name)
		if rnd.IntN(6) == 0 {
			server.Delete("n", name)
			return
		}
		label := []string{"yes", "no", "no"}[rnd.IntN(3)]
		version := server.Set(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name, "namespace": "n", "labels": map[string]any{"seen": label}}}})
		if label == "yes" {
			want[name] = version
		}
	}
	for range 10 {
		change()
	}
	clients := []*watcher{
		{t: t, h: filter(server)},
		{t: t, h: filter(server), query: "watch=1&timeoutSeconds=3", vague: true},
		{t: t, h: filter(server), query: "watch=1&timeoutSeconds=3&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"},
	}
	quiet := make(chan struct{})
	var running sync.WaitGroup
	for _, c := range clients {
		running.Go(func() {
			for over := 0; over < 3; {
				c.round()
				time.Sleep(time.Duration(1+len(c.store)) * 100 * time.Millisecond)
				select {
				case <-quiet:
					over++
				default:
				}
			}
		})
	}
	for range 200 {
		time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
		if change(); compacts && rnd.IntN(10) == 0 {
			server.Forget()
		}
	}
	close(quiet)
	running.Wait()
	for i, c := range clients {
		if !maps.Equal(c.store, want) {
			t.Errorf("client %d has %v, want %v", i, c.store, want)
		}
		if c.expired > 0 && !compacts {
			t.Errorf("client %d had to list again %d times, although the server had kept all changes", i, c.expired)
		}
	}
}
