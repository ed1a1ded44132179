package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// do sends a request to a handler, with the time that a watch would last otherwise as its bound.
func do(t *testing.T, h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	r := httptest.NewRequest(method, target, nil).WithContext(ctx)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// summary returns the content of a list or a watch, without versions.
func summary(t *testing.T, body string) (lines []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(body))
	for d.More() {
		var e struct {
			Type, Kind string
			Code       int
			Object     struct {
				Kind, Reason string
				Code         int
				Metadata     struct {
					Name        string
					Annotations map[string]string
				}
			}
			Items []struct {
				Metadata struct {
					Name        string
					Annotations map[string]string
				}
			}
		}
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		switch {
		case e.Kind != "":
			line := e.Kind
			for _, item := range e.Items {
				line += fmt.Sprintf(" %s: %s", item.Metadata.Name, item.Metadata.Annotations["colour"])
			}
			lines = append(lines, line)
		case e.Object.Kind == "Status":
			lines = append(lines, fmt.Sprintf("%s %d", e.Type, e.Object.Code))
		case e.Object.Metadata.Annotations["k8s.io/initial-events-end"] == "true":
			lines = append(lines, e.Type+" initial")
		default:
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Type, e.Object.Metadata.Name, e.Object.Metadata.Annotations["colour"])))
		}
	}
	return lines
}

func expect(t *testing.T, got *httptest.ResponseRecorder, want ...string) {
	t.Helper()
	if lines := summary(t, got.Body.String()); strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d %q\nwant\n%q", got.Code, lines, want)
	}
}

var listVersion = regexp.MustCompile(`^\{"kind":"ThingList","apiVersion":"example.org/v1","metadata":\{"resourceVersion":"([0-9]+)"`)

func versionOf(t *testing.T, list *httptest.ResponseRecorder) string {
	t.Helper()
	m := listVersion.FindStringSubmatch(list.Body.String())
	if m == nil {
		t.Fatalf("no list: %d %s", list.Code, list.Body)
	}
	return m[1]
}

const watchList = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

// TestSemantics: responses to lists and watches are those of an API server.
func TestSemantics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := newServer(t, false), newPaint()
		views := newViews(t, view.Options{Frames: 3}, p)
		defer views.Close()
		h := views.Filter(server)
		p.set("sky", "blue")
		server.Set(thing("a", [3]string{"sky", "", "0"}))
		server.Set(thing("b", [3]string{"sea", "", "0"}))
		first := do(t, h, "GET", collectionPath)
		expect(t, first, "ThingList a: blue of 1")
		from := collectionPath + "?watch=1&resourceVersion=" + versionOf(t, first)

		p.set("sea", "green")
		synctest.Wait()
		expect(t, do(t, h, "GET", from), "ADDED b green of 1")
		p.set("sky", "grey")
		synctest.Wait()
		server.Delete("n", "b")
		synctest.Wait()
		expect(t, do(t, h, "GET", from+"&allowWatchBookmarks=true"), "ADDED b green of 1", "MODIFIED a grey of 1", "DELETED b green of 1", "BOOKMARK")
		expect(t, do(t, h, "GET", collectionPath+"?watch=1"), "ADDED a grey of 1")
		expect(t, do(t, h, "GET", collectionPath+"?watch=1&resourceVersion=0"+watchList), "ADDED a grey of 1", "BOOKMARK initial", "BOOKMARK")
		expect(t, do(t, h, "GET", "/apis/example.org/v1/watch/things"), "ADDED a grey of 1")

		other := *thing("a", [3]string{"sky", "", "0"})
		other.SetUID("another")
		server.Set(&other)
		synctest.Wait()
		expect(t, do(t, h, "GET", from), "ERROR 410") // three are kept, of five
		now := versionOf(t, do(t, h, "GET", collectionPath))
		expect(t, do(t, h, "GET", collectionPath+"?watch=1&resourceVersion=12345"), "ERROR 410")
		expect(t, do(t, h, "GET", collectionPath+"?watch=1&resourceVersion=9000000000000000000"+watchList), "ERROR 504")
		expect(t, do(t, h, "GET", collectionPath+"?resourceVersion=12345"), "ThingList a: grey of 1")
		for query, code := range map[string]int{
			"?resourceVersion=9000000000000000000":               504,
			"?resourceVersion=12345&resourceVersionMatch=Exact":  410,
			"?resourceVersionMatch=Exact&resourceVersion=" + now: 200,
			"?limit=1&continue=abc":                              410,
			"?resourceVersion=abc":                               400,
			"?watch=1&resourceVersion=abc":                       400,
			"?watch=1&sendInitialEvents=true":                    422,
		} {
			if got := do(t, h, "GET", collectionPath+query); got.Code != code {
				t.Errorf("%s: %d %s, want %d", query, got.Code, got.Body, code)
			}
		}
	})
}

// TestAnotherOfTheSameName: clients receive DELETED for the old object and ADDED for the new one.
func TestAnotherOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := newServer(t, false), newPaint()
		views := newViews(t, view.Options{}, p)
		defer views.Close()
		h := views.Filter(server)
		p.set("sky", "blue")
		server.Set(thing("a", [3]string{"sky", "", "0"}))
		from := collectionPath + "?watch=1&resourceVersion=" + versionOf(t, do(t, h, "GET", collectionPath))
		server.Set(thing("a", [3]string{"sky", "", "1"})) // its text is in the uid
		synctest.Wait()
		expect(t, do(t, h, "GET", from), "DELETED a blue of 1", "ADDED a blue of 1")
	})
}

// TestVersionsOfOneAreNotAnothers: neither the View of another gateway nor one of other objects
// accepts a version as its own.
func TestVersionsOfOneAreNotAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := newServer(t, false), newPaint()
		p.set("sky", "blue")
		server.Set(thing("a", [3]string{"sky", "", "0"}))
		one, another := newViews(t, view.Options{}, p), newViews(t, view.Options{}, p)
		defer one.Close()
		defer another.Close()
		version := versionOf(t, do(t, one.Filter(server), "GET", collectionPath))
		versionOf(t, do(t, another.Filter(server), "GET", collectionPath))
		expect(t, do(t, another.Filter(server), "GET", collectionPath+"?watch=1&resourceVersion="+version), "ERROR 410")
		selected := collectionPath + "?labelSelector=like"
		versionOf(t, do(t, one.Filter(server), "GET", selected))
		expect(t, do(t, one.Filter(server), "GET", selected+"&watch=1&resourceVersion="+version), "ERROR 410")
	})
}

// TestGate: nothing is served before all dependencies are known.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := newServer(t, false), newPaint()
		p.synced = false
		views := newViews(t, view.Options{}, p)
		defer views.Close()
		h := views.Filter(server)
		server.Set(thing("a", [3]string{"sky", "", "0"}))
		for _, target := range []string{collectionPath, collectionPath + "?watch=1", "/apis/example.org/v1/namespaces/n/things/a"} {
			if got := do(t, h, "GET", target); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" {
				t.Errorf("%s: %d %s, want 429", target, got.Code, got.Body)
			}
		}
		p.mu.Lock()
		p.synced = true
		p.mu.Unlock()
		p.set("sky", "blue")
		expect(t, do(t, h, "GET", collectionPath), "ThingList a: blue of 1")
		if got := do(t, h, "GET", "/apis/example.org/v1/namespaces/n/things/a"); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), "blue of 1") {
			t.Errorf("%d %s", got.Code, got.Body)
		}
		if got := do(t, h, "GET", "/apis/example.org/v1/namespaces/n/things/b"); got.Code != http.StatusNotFound {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
}

// TestWritesAreRefused: rendered objects must not be written back.
func TestWritesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		views := newViews(t, view.Options{}, newPaint())
		defer views.Close()
		for _, method := range []string{"PUT", "PATCH"} {
			if got := do(t, views.Filter(newServer(t, false)), method, collectionPath+"/a"); got.Code != http.StatusForbidden {
				t.Errorf("%s: %d", method, got.Code)
			}
		}
	})
}

// TestRefusedCaller: a caller that the server refuses receives the server's response, and no caller
// is served from another's View; a View whose credentials are withdrawn ends.
func TestRefusedCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := newServer(t, false), newPaint()
		p.set("sky", "blue")
		server.Set(thing("a", [3]string{"sky", "", "0"}))
		var valid atomic.Value
		valid.Store("Bearer 1")
		board := &switchboard{cancel: map[int]context.CancelFunc{}, h: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != valid.Load() {
				watchcodec.WriteStatus(w, watchcodec.NewFailure(http.StatusUnauthorized, "Unauthorized", "who are you?"))
				return
			}
			server.ServeHTTP(w, r)
		})}
		views := newViews(t, view.Options{}, p)
		defer views.Close()
		h := views.Filter(board)
		expect(t, do(t, h, "GET", collectionPath, "Authorization", "Bearer 1"), "ThingList a: blue of 1")
		for _, token := range []string{"Bearer 2", ""} {
			if got := do(t, h, "GET", collectionPath, "Authorization", token); got.Code != http.StatusUnauthorized || !strings.Contains(got.Body.String(), "who are you?") {
				t.Errorf("%q: %d %s", token, got.Code, got.Body)
			}
		}
		valid.Store("Bearer 3")
		board.cut()
		time.Sleep(time.Minute)
		if got := do(t, h, "GET", collectionPath, "Authorization", "Bearer 1"); got.Code != http.StatusUnauthorized {
			t.Errorf("after its end: %d %s", got.Code, got.Body)
		}
	})
}

// TestLimits: too many Views, and too many bytes in one.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := newServer(t, false), newPaint()
		p.set("sky", "blue")
		server.Set(thing("a", [3]string{"sky", "", "0"}))
		views := newViews(t, view.Options{MaxViews: 1, Idle: time.Hour}, p)
		expect(t, do(t, views.Filter(server), "GET", collectionPath), "ThingList a: blue of 1")
		if got := do(t, views.Filter(server), "GET", collectionPath+"?labelSelector=x"); got.Code != http.StatusServiceUnavailable {
			t.Errorf("%d %s", got.Code, got.Body)
		}
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		expect(t, do(t, views.Filter(server), "GET", collectionPath+"?labelSelector=x"), "ThingList a: blue of 1")
		views.Close()
		if got := do(t, views.Filter(server), "GET", collectionPath); got.Code != http.StatusServiceUnavailable {
			t.Errorf("after Close: %d %s", got.Code, got.Body)
		}
		small := newViews(t, view.Options{MaxBytes: 100}, p)
		defer small.Close()
		if got := do(t, small.Filter(server), "GET", collectionPath); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "memory") {
			t.Errorf("%d %s", got.Code, got.Body)
		}
	})
}

// failing is a Renderer that returns an error.
type failing struct{ *paint }

func (failing) Render([]view.Item, func(string)) error { return errors.New("no") }

// TestFailingRenderer: all objects are hidden.
func TestFailingRenderer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, false)
		server.Set(thing("a", [3]string{"sky", "", "0"}))
		views, err := view.New(view.Options{Renderer: func(*http.Request, watchcodec.Request) view.Renderer { return failing{newPaint()} }})
		if err != nil {
			t.Fatal(err)
		}
		defer views.Close()
		expect(t, do(t, views.Filter(server), "GET", collectionPath), "ThingList")
	})
}

// TestWrongOptions: invalid Options are errors.
func TestWrongOptions(t *testing.T) {
	renderer := func(*http.Request, watchcodec.Request) view.Renderer { return nil }
	for _, o := range []view.Options{{}, {Renderer: renderer, Frames: -1}, {Renderer: renderer, MaxViews: -1}, {Renderer: renderer, MaxObject: -1}} {
		if _, err := view.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// counting counts what is rendered.
type counting struct {
	*paint
	rendered atomic.Int64
}

func (c *counting) Render(items []view.Item, depends func(string)) error {
	c.rendered.Add(int64(len(items)))
	return c.paint.Render(items, depends)
}

// TestOnlyDependentsAreRendered: of a hundred objects only those that depend on the change are
// rendered.
func TestOnlyDependentsAreRendered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, c := newServer(t, false), &counting{paint: newPaint()}
		for i := range 100 {
			server.Set(thing(fmt.Sprintf("t%d", i), [3]string{fmt.Sprintf("l%d", i%20), "", "0"}))
		}
		views, err := view.New(view.Options{Renderer: func(*http.Request, watchcodec.Request) view.Renderer { return c }})
		if err != nil {
			t.Fatal(err)
		}
		defer views.Close()
		expect(t, do(t, views.Filter(server), "GET", collectionPath), "ThingList")
		before := c.rendered.Load()
		c.set("l7", "blue")
		c.set("unknown", "blue")
		synctest.Wait()
		if n := c.rendered.Load() - before; before != 100 || n != 5 {
			t.Errorf("%d were rendered at first, %d of the change, want 100 and 5", before, n)
		}
	})
}

// sameBytes is a client that notes the addresses of the bytes that it is sent.
type sameBytes struct {
	*httptest.ResponseRecorder
	mu   sync.Mutex
	sent []*byte
}

func (c *sameBytes) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) > 0 {
		c.sent = append(c.sent, &p[0])
	}
	return len(p), nil
}

// TestEncodedOnce: a hundred clients are sent the same bytes, not equal ones.
func TestEncodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := newServer(t, false), newPaint()
		views := newViews(t, view.Options{}, p)
		defer views.Close()
		h := views.Filter(server)
		from := collectionPath + "?watch=1&resourceVersion=" + versionOf(t, do(t, h, "GET", collectionPath))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		clients := make([]*sameBytes, 100)
		for i := range clients {
			clients[i] = &sameBytes{ResponseRecorder: httptest.NewRecorder()}
			running.Go(func() {
				h.ServeHTTP(clients[i], httptest.NewRequest("GET", from, nil).WithContext(ctx))
			})
		}
		p.set("sky", "blue")
		for i := range 5 {
			server.Set(thing(fmt.Sprintf("t%d", i), [3]string{"sky", "", "0"}))
		}
		time.Sleep(time.Second)
		cancel()
		running.Wait()
		for _, c := range clients {
			if len(c.sent) != 5 || !slices.Equal(c.sent, clients[0].sent) {
				t.Fatalf("%d writes at %v, the first client's were at %v", len(c.sent), c.sent, clients[0].sent)
			}
		}
	})
}
