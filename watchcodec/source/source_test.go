package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// recordingSink is a sink that notes its calls.
type recordingSink struct {
	mu      sync.Mutex
	objects map[string]string // version by name
	seen    map[string]bool
	calls   []string
	fail    error
}

func newRecord() *recordingSink { return &recordingSink{objects: map[string]string{}} }

func (r *recordingSink) note(format string, args ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recordingSink) Replacing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = map[string]bool{}
	r.note("replacing")
}

func (r *recordingSink) Set(o *watchcodec.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[string(o.Name())] = true
	r.objects[string(o.Name())] = string(o.ResourceVersion())
	return r.fail
}

func (r *recordingSink) Delete(o *watchcodec.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.objects, string(o.Name()))
	return nil
}

func (r *recordingSink) Replaced(c source.Collection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.objects {
		if !r.seen[name] {
			delete(r.objects, name)
		}
	}
	r.note("replaced %s %s", c.APIVersion, c.Kind)
}

func (r *recordingSink) Lost(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.calls); n == 0 || !strings.HasPrefix(r.calls[n-1], "lost") {
		r.note("lost %v", err)
	}
}

func (r *recordingSink) Found() {}

func (r *recordingSink) expect(t *testing.T, objects map[string]string, calls ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !maps.Equal(r.objects, objects) || !slices.Equal(r.calls, calls) {
		t.Errorf("%v\n%q\nwant %v\n%q", r.objects, r.calls, objects, calls)
	}
}

// script responds to requests by their kind, and notes them.
type script struct {
	mu        sync.Mutex
	requested []string
	steps     map[string][]http.HandlerFunc // the last one is repeated
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	what := "list"
	switch {
	case q.Get("sendInitialEvents") == "true":
		what = "watchlist"
	case q.Get("watch") == "true":
		what = "watch " + q.Get("resourceVersion")
	case q.Get("continue") != "":
		what = "list " + q.Get("continue")
	}
	s.mu.Lock()
	s.requested = append(s.requested, what)
	kind, _, _ := strings.Cut(what, " ")
	steps := s.steps[kind]
	if len(steps) > 1 {
		s.steps[kind] = steps[1:]
	}
	s.mu.Unlock()
	if len(steps) == 0 {
		http.Error(w, "nothing of the kind", http.StatusNotFound)
		return
	}
	steps[0](w, r)
}

func text(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// events sends some events, and then leaves the watch open.
func events(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for _, line := range lines {
			_, _ = io.WriteString(w, line+"\n")
		}
		<-r.Context().Done()
	}
}

func event(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Thing","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":%q}}}`, kind, name, version)
}

const (
	end  = `{"type":"BOOKMARK","object":{"kind":"Thing","apiVersion":"v1","metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	gone = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`
	odd  = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcd can't","code":500}}`
)

func list(version, next string, names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"1"}}`, name))
	}
	return fmt.Sprintf(`{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`, version, next, strings.Join(items, ","))
}

// play lets a source follow a script for a while.
func play(t *testing.T, steps map[string][]http.HandlerFunc, r *recordingSink, d time.Duration) (s *script, err error) {
	t.Helper()
	leaktest.Check(t)
	s = &script{steps: steps}
	src, err := source.New(source.Options{Handler: s, Request: httptest.NewRequest("GET", "/api/v1/things", nil), Sink: r})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	return s, src.Run(ctx)
}

// TestScripts: behaviours of servers, and the requests that follow.
func TestScripts(t *testing.T) {
	type steps = map[string][]http.HandlerFunc
	listed := text(200, "application/json", list("5", "", "a", "b"))
	for name, c := range map[string]struct {
		steps     steps
		requested []string
		objects   map[string]string
		calls     []string
	}{
		"all as events": {
			steps{"watchlist": {events(event("ADDED", "a", "3"), end, event("MODIFIED", "a", "11"), event("ADDED", "b", "12"), event("DELETED", "a", "13"))}},
			[]string{"watchlist"}, map[string]string{"b": "12"}, []string{"replacing", "replaced v1 Thing"},
		},
		"continues where it was": {
			steps{"watchlist": {func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, end+"\n"+event("ADDED", "a", "17")+"\n"+event("ADDED", "b", "18")[:30])
			}}, "watch": {events(event("ADDED", "b", "18"))}},
			[]string{"watchlist", "watch 17"}, map[string]string{"a": "17", "b": "18"}, []string{"replacing", "replaced v1 Thing", "lost unexpected EOF"},
		},
		"refuses to send all as events": {
			steps{"watchlist": {text(422, "application/json", `{}`)}, "list": {listed}, "watch": {events(event("DELETED", "a", "6"))}},
			[]string{"watchlist", "list", "watch 5"}, map[string]string{"b": "1"}, []string{"replacing", "replacing", "replaced v1 Thing"},
		},
		"says that it will, and sends none": {
			steps{"watchlist": {events(event("MODIFIED", "x", "4"))}, "list": {listed}, "watch": {events()}},
			[]string{"watchlist", "list", "watch 5"}, map[string]string{"a": "1", "b": "1"}, []string{"replacing", "replacing", "replaced v1 Thing"},
		},
		"can't, as with etcd 3.4": {
			steps{"watchlist": {events(odd)}, "list": {listed}, "watch": {events()}},
			[]string{"watchlist", "list", "watch 5"}, map[string]string{"a": "1", "b": "1"}, []string{"replacing", "replacing", "replaced v1 Thing"},
		},
		"has forgotten": {
			steps{"watchlist": {func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, event("ADDED", "a", "3")+"\n"+end+"\n"+gone+"\n")
			}, events(event("ADDED", "b", "20"), end)}},
			[]string{"watchlist", "watchlist"}, map[string]string{"b": "20"}, []string{"replacing", "replaced v1 Thing", "replacing", "replaced v1 Thing"},
		},
		"sends pages": {
			steps{"watchlist": {text(400, "text/plain", "")}, "list": {text(200, "application/json", list("5", "more", "a")), text(200, "application/json", list("5", "", "b"))}, "watch": {events()}},
			[]string{"watchlist", "list", "list more", "watch 5"}, map[string]string{"a": "1", "b": "1"}, []string{"replacing", "replacing", "replaced v1 Thing"},
		},
		"responds with HTML, then with a watch": {
			steps{"watchlist": {text(200, "text/html", "<p>log in"), events(end)}},
			[]string{"watchlist", "watchlist"}, map[string]string{}, []string{"replacing", `lost source: a response that can't be read: Content-Type "text/html", Content-Encoding ""`, "replacing", "replaced v1 Thing"},
		},
		"panics, then responds": {
			steps{"watchlist": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, events(end)}},
			[]string{"watchlist", "watchlist"}, map[string]string{}, []string{"replacing", "lost source: the response was cut off", "replacing", "replaced v1 Thing"},
		},
		"is down, then responds": {
			steps{"watchlist": {text(502, "text/plain", "no route"), events(end)}},
			[]string{"watchlist", "watchlist"}, map[string]string{}, []string{"replacing", "lost source: the server responds with 502: no route", "replacing", "replaced v1 Thing"},
		},
		"sends what is no JSON": {
			steps{"watchlist": {events(end, `{"type":"ADDED","object":{"metadata":{"name":1}}}`)}, "watch": {events()}},
			[]string{"watchlist", "watch 10"}, map[string]string{}, []string{"replacing", "replaced v1 Thing", "lost watchcodec: malformed JSON at byte 45"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRecord()
				s, err := play(t, c.steps, r, time.Minute)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("it ended with %v", err)
				}
				if !slices.Equal(s.requested, c.requested) {
					t.Errorf("requested %q, want %q", s.requested, c.requested)
				}
				r.expect(t, c.objects, c.calls...)
			})
		})
	}
}

// TestEnds: a caller that is refused, and a sink that fails.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, status := range []int{401, 403, 404, 405} {
			_, err := play(t, map[string][]http.HandlerFunc{"watchlist": {text(status, "application/json", "no")}}, newRecord(), time.Hour)
			var refused *source.RefusedError
			if !errors.As(err, &refused) || refused.Status != status || string(refused.Body) != "no" {
				t.Errorf("%d: %v", status, err)
			}
		}
		r := newRecord()
		r.fail = errors.New("full")
		if _, err := play(t, map[string][]http.HandlerFunc{"watchlist": {events(event("ADDED", "a", "1"))}}, r, time.Hour); !errors.Is(err, r.fail) {
			t.Errorf("a full sink: %v", err)
		}
	})
}

// TestRetryAfter: a busy server receives no request before the time that it gives.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var again time.Duration
		_, _ = play(t, map[string][]http.HandlerFunc{"watchlist": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "20")
				w.WriteHeader(http.StatusTooManyRequests)
			},
			func(w http.ResponseWriter, r *http.Request) {
				again = time.Since(begin)
				events(end)(w, r)
			},
		}}, newRecord(), time.Minute)
		if again < 20*time.Second || again > 21*time.Second {
			t.Errorf("requested again after %v", again)
		}
	})
}

// TestRequestsSent: the selectors and the credentials of the request are sent with each request,
// and no field that would change the form of the response.
func TestRequestsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *http.Request
		r := httptest.NewRequest("GET", "/api/v1/things?labelSelector=a%3Db&fieldSelector=c&limit=7&watch=1", nil)
		for name, value := range map[string]string{"Authorization": "Bearer x", "Accept-Encoding": "gzip", "If-None-Match": "x", "Connection": "Upgrade", "Upgrade": "websocket", "Accept": "application/json"} {
			r.Header.Set(name, value)
		}
		s, err := source.New(source.Options{Sink: newRecord(), Request: r, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r
			events(end)(w, r)
		})})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = s.Run(ctx)
		q := got.URL.Query()
		if q.Get("labelSelector") != "a=b" || q.Get("fieldSelector") != "c" || q.Has("limit") || q.Get("resourceVersionMatch") != "NotOlderThan" || q.Get("timeoutSeconds") == "" {
			t.Errorf("the query is %v", q)
		}
		if want := (http.Header{"Authorization": {"Bearer x"}, "Accept": {"application/json"}}); !maps.EqualFunc(got.Header, want, slices.Equal[[]string]) {
			t.Errorf("the header is %v", got.Header)
		}
	})
}
