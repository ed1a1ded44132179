package watchcodec_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec"
)

// seeAll shows every object unchanged.
func seeAll(*watchcodec.Object) (bool, error) { return true, nil }

// filtered serves handler behind a filter.
func filtered(t *testing.T, rewrite watchcodec.Rewriter, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	f, err := watchcodec.NewFilter(watchcodec.FilterOptions{Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return rewrite }})
	if err != nil {
		t.Fatal(err)
	}
	s := wiretest.NewServer(f(handler))
	t.Cleanup(s.Close)
	return s
}

// readable reports whether the filter can request the recording.
func readable(r recording) bool {
	_, ok := watchcodec.Negotiate([]string{r.accept})
	return ok && !strings.Contains(r.accept, "as=Table") && strings.HasPrefix(r.contentType, "application/") && !strings.Contains(r.name, "discovery")
}

// replay serves a recording, in pieces of n bytes.
func replay(t *testing.T, r recording, n int) http.HandlerFunc {
	body := r.body(t)
	return func(w http.ResponseWriter, in *http.Request) {
		if ae := in.Header.Get("Accept-Encoding"); ae != "" {
			t.Errorf("%s: the request accepts the encoding %s", r.name, ae)
		}
		w.Header().Set("Content-Type", r.contentType)
		content := body
		if r.encoding == "gzip" { // a server that compresses all the same, with one member for each half
			w.Header().Set("Content-Encoding", "gzip")
			content = append(zip(body[:len(body)/2]), zip(body[len(body)/2:])...)
		}
		status := 0
		_, _ = fmt.Sscan(r.status, &status)
		w.WriteHeader(status)
		for len(content) > 0 {
			piece := content[:min(n, len(content))]
			content = content[len(piece):]
			if _, err := w.Write(piece); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func zip(p []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(p)
	_ = z.Close()
	return b.Bytes()
}

// TestRecordingsThroughTheFilter: lists, watches, single objects and errors of a real
// kube-apiserver pass byte for byte if no object is changed, except for the count of the objects on
// later pages.
func TestRecordingsThroughTheFilter(t *testing.T) {
	leaktest.Check(t)
	n := 0
	for _, r := range recorded(t, readable) {
		want := r.body(t)
		for _, size := range []int{1 << 20, 1009} {
			s := filtered(t, seeAll, replay(t, r, size))
			resp, got := wiretest.Get(t, s.URL+r.target, "Accept", r.accept, "Accept-Encoding", "gzip")
			s.Close()
			if fmt.Sprint(resp.StatusCode) != r.status || resp.Header.Get("Content-Encoding") != "" {
				t.Errorf("%s: %s %v", r.name, resp.Status, resp.Header)
			}
			if bytes.Contains(want, []byte("remainingItemCount")) || strings.Contains(r.name, "page") && !strings.Contains(r.name, "page4") {
				if bytes.Contains(got, []byte("remainingItemCount")) || len(got) >= len(want) || len(got) < len(want)-40 {
					t.Errorf("%s: %d bytes, the server sent %d", r.name, len(got), len(want))
				}
				continue
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s in pieces of %d: %d bytes, the server sent %d; the end is %q", r.name, size, len(got), len(want), got[max(0, len(got)-200):])
			}
			n++
		}
	}
	if n < 200 {
		t.Errorf("%d recordings passed", n)
	}
}

// notEven hides objects whose name ends in an even digit.
func notEven(o *watchcodec.Object) (bool, error) {
	name := o.Name()
	return len(name) == 0 || !strings.ContainsRune("02468", rune(name[len(name)-1])), nil
}

// TestListsFiltered: of each recorded list the items are left that a decoder would leave.
func TestListsFiltered(t *testing.T) {
	for _, r := range recorded(t, func(r recording) bool {
		return readable(r) && strings.HasPrefix(r.name, "list/") && r.status == "200" && r.format() == watchcodec.JSON
	}) {
		s := filtered(t, notEven, replay(t, r, 4096))
		_, got := wiretest.Get(t, s.URL+r.target, "Accept", r.accept)
		s.Close()
		var is, want map[string]any
		if err := json.Unmarshal(got, &is); err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		if err := json.Unmarshal(r.body(t), &want); err != nil {
			t.Fatal(err)
		}
		delete(want["metadata"].(map[string]any), "remainingItemCount")
		items, _ := want["items"].([]any)
		left := []any{}
		for _, item := range items {
			name := item.(map[string]any)["metadata"].(map[string]any)["name"].(string)
			if !strings.ContainsRune("02468", rune(name[len(name)-1])) {
				left = append(left, item)
			}
		}
		if want["items"] != nil {
			want["items"] = left
		}
		if !reflect.DeepEqual(is, want) {
			t.Errorf("%s: %d items, want %d", r.name, len(is["items"].([]any)), len(left))
		}
		if len(items) > 10 && len(left) == len(items) {
			t.Errorf("%s: nothing is hidden", r.name)
		}
	}
}

// pod returns an event of a pod, whose label "seen" decides whether clients see it.
func pod(kind, name, seen, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"n","uid":"u-%s","resourceVersion":%q,"labels":{"seen":%q}},"spec":{"secret":"s"}}}`, kind, name, name, version, seen) + "\n"
}

func gone(name, version string) string {
	return fmt.Sprintf(`{"type":"DELETED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"n","uid":"u-%s","resourceVersion":%q}}}`, name, name, version) + "\n"
}

func seen(o *watchcodec.Object) (bool, error) {
	label, _ := o.Label("seen")
	return string(label) == "yes", nil
}

// TestTransitions: the events that a client receives for an object that becomes visible or hidden.
func TestTransitions(t *testing.T) {
	const bookmark = `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
	const failed = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 10 (8446)","reason":"Expired","code":410}}` + "\n"
	for _, test := range []struct{ name, sent, want string }{
		{"seen", pod("ADDED", "a", "yes", "1") + pod("MODIFIED", "a", "yes", "2") + pod("DELETED", "a", "yes", "3"),
			pod("ADDED", "a", "yes", "1") + pod("MODIFIED", "a", "yes", "2") + pod("DELETED", "a", "yes", "3")},
		{"hidden", pod("ADDED", "a", "no", "1") + pod("MODIFIED", "a", "no", "2") + pod("DELETED", "a", "no", "3"), ""},
		{"becomes visible", pod("ADDED", "a", "no", "1") + pod("MODIFIED", "a", "yes", "2"), pod("ADDED", "a", "yes", "2")},
		{"becomes hidden", pod("ADDED", "a", "yes", "1") + pod("MODIFIED", "a", "no", "2") + pod("MODIFIED", "a", "no", "3") + pod("DELETED", "a", "no", "4"),
			pod("ADDED", "a", "yes", "1") + gone("a", "2")},
		{"and comes back", pod("ADDED", "a", "yes", "1") + pod("MODIFIED", "a", "no", "2") + pod("MODIFIED", "a", "yes", "3"), pod("ADDED", "a", "yes", "1") + gone("a", "2") + pod("ADDED", "a", "yes", "3")},
		{"deleted while it is hidden", pod("ADDED", "a", "yes", "1") + pod("DELETED", "a", "no", "2"), pod("ADDED", "a", "yes", "1") + gone("a", "2")},
		{"never seen", pod("MODIFIED", "a", "no", "2") + pod("MODIFIED", "a", "yes", "3"), pod("ADDED", "a", "yes", "3")},
		{"unknown before", pod("MODIFIED", "a", "yes", "2"), pod("MODIFIED", "a", "yes", "2")},
		{"another of the same name", pod("ADDED", "a", "no", "1") + pod("DELETED", "a", "no", "2") + pod("MODIFIED", "a", "no", "3"), ""},
		{"a bookmark", pod("ADDED", "a", "no", "1") + bookmark, bookmark},
		{"an error", failed, failed},
	} {
		s := filtered(t, seen, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, test.sent)
		})
		if _, got := wiretest.Get(t, s.URL+"/api/v1/pods?watch=1"); string(got) != test.want {
			t.Errorf("%s:\n%swant\n%s", test.name, got, test.want)
		}
		s.Close()
	}
}

// TestEventsAtOnce: the header and each event reach the client before the next event exists,
// compressed by the server or not.
func TestEventsAtOnce(t *testing.T) {
	leaktest.Check(t)
	for _, zipped := range []bool{false, true} {
		next := make(chan string)
		s := filtered(t, seen, func(w http.ResponseWriter, r *http.Request) {
			flush := http.NewResponseController(w).Flush
			w.Header().Set("Content-Type", "application/json")
			if zipped {
				w.Header().Set("Content-Encoding", "gzip")
			}
			_ = flush()
			for event := range next {
				if b := []byte(event); zipped {
					_, _ = w.Write(zip(b))
				} else {
					_, _ = w.Write(b)
				}
				_ = flush()
			}
		})
		resp, err := http.Get(s.URL + "/api/v1/pods?watch=1")
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(resp.Body)
		for i := range 5 {
			event := pod("ADDED", fmt.Sprint("p", i), "yes", fmt.Sprint(i))
			next <- pod("ADDED", fmt.Sprint("hidden", i), "no", fmt.Sprint(i))
			next <- event
			if got, err := lines.ReadString('\n'); got != event || err != nil {
				t.Fatalf("zipped %v: %q, %v, want %q", zipped, got, err, event)
			}
		}
		close(next)
		if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
			t.Errorf("zipped %v: %q and %v at the end", zipped, rest, err)
		}
		resp.Body.Close()
		s.Close()
	}
}

// TestMalformedResponses: content that can't be read is not passed on, and the client receives an
// error.
func TestMalformedResponses(t *testing.T) {
	leaktest.Check(t)
	secret := pod("ADDED", "secret", "no", "1")
	object := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"seen":"no"}}}`
	const list, watch, one = "/api/v1/pods", "/api/v1/pods?watch=1", "/api/v1/namespaces/n/pods/a"
	for _, test := range []struct {
		name, path, contentType, encoding, sent string
		status                                  int    // 0: there is no header
		want                                    string // contained in the response
	}{
		{"HTML for a list", list, "text/html", "", "<html>secret", 502, `text/html`},
		{"HTML for a watch", watch, "text/html", "", "<html>secret", 502, `text/html`},
		{"HTML for an object", one, "text/html", "", "<html>secret", 502, `text/html`},
		{"CBOR", list, "application/cbor", "", "secret", 502, "application/cbor"},
		{"brotli", list, "application/json", "br", "secret", 502, "Content-Encoding br"},
		{"a stream cut in an event", watch, "application/json", "", secret + secret[:len(secret)-9], 200, "in the middle of an event"},
		{"no JSON", watch, "application/json", "", "secret", 200, `"type":"ERROR"`},
		{"an unknown type", watch, "application/json", "", strings.Replace(secret, "ADDED", "RENAMED", 1), 200, `unknown event type \"RENAMED\"`},
		{"two objects", watch, "application/json", "", `{"type":"ADDED","object":` + strings.Replace(object, "no", "yes", 1) + `,"object":` + object + "}\n", 200, `"type":"ERROR"`},
		{"two kinds of metadata", watch, "application/json", "", `{"type":"ADDED","object":{"metadata":{"name":"a","labels":{"seen":"yes"}},"metadata":{"name":"secret"}}}` + "\n", 200, `twice`},
		{"metadata in capitals", watch, "application/json", "", `{"type":"ADDED","object":{"metadata":{"labels":{"seen":"yes"}},"METADATA":{"name":"secret"}}}` + "\n", 200, `in the place of metadata`},
		{"escaped metadata", watch, "application/json", "", `{"type":"ADDED","object":{"metadata":{"labels":{"seen":"yes"}},"\u006detadata":{"name":"secret"}}}` + "\n", 200, `"type":"ERROR"`},
		{"a field twice, once escaped", watch, "application/json", "", `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{"seen":"yes"}},"spec":{},"sp\u0065c":{"name":"secret"}}}` + "\n", 200, `twice`},
		{"metadata with a field twice, once escaped", watch, "application/json", "", `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{"seen":"yes"},"generateName":"a","g\u0065nerateName":"secret"}}}` + "\n", 200, `twice`},
		{"a kind with a Kelvin sign", watch, "application/json", "", `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{"seen":"yes"}},"` + "\u212a" + `ind":"secret"}}` + "\n", 200, `in the place of kind`},
		{"mismatched brackets", watch, "application/json", "", `{"type":"ADDED","object":{"metadata":{"labels":{"seen":"yes"}},"spec":["secret"}}}` + "\n", 200, `"type":"ERROR"`},
		{"nested too deeply", watch, "application/json", "", `{"type":"ADDED","object":{"metadata":{"labels":{"seen":"yes"}},"spec":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}}\n", 200, `nested too deeply`},
		{"a Table", watch, "application/json", "", `{"type":"ADDED","object":{"kind":"Table","metadata":{},"rows":[{"cells":["secret"]}]}}` + "\n", 200, "Table"},
		{"a table in the place of a list", list, "application/json", "", `{"kind":"Table","metadata":{},"rows":[{"cells":["secret"]}]}`, 502, "Status"},
		{"a list cut short", list, "application/json", "", `{"kind":"PodList","items":[` + object, 0, "BROKEN"}, // cut off before its header is sent
		{"items in capitals", list, "application/json", "", `{"kind":"PodList","ITEMS":[` + object + `]}`, 502, "in the place of items"},
		{"items with a long s", list, "application/json", "", `{"kind":"PodList","apiVersion":"v1","item` + "\u017f" + `":[` + object + `]}`, 502, "in the place of items"},
		{"items that are an object", list, "application/json", "", `{"kind":"PodList","apiVersion":"v1","items":` + strings.Replace(object, `"a"`, `"secret"`, 1) + `}`, 502, "malformed"},
		{"a kind that is an object", list, "application/json", "", `{"items":[],"kind":{"name":"secret"}}`, 502, "malformed"},
		{"metadata that is a list", list, "application/json", "", `{"kind":"PodList","apiVersion":"v1","metadata":["secret"],"items":[]}`, 502, "malformed"},
		{"a list in protobuf that is a number", list, "application/vnd.kubernetes.protobuf", "", "k8s\x00\x0a\x0d\x0a\x02v1\x12\x07PodList\x11\x0a\x06\x12\x04seca", 502, "malformed protobuf"},
		{"a list in the place of an object", one, "application/json", "", `{"kind":"PodList","items":[` + object + `]}`, 502, "in the place of an object"},
		{"two objects in the place of one", one, "application/json", "", strings.Replace(object, "no", "yes", 1) + object, 502, "malformed"},
		{"a hidden object", one, "application/json", "", object, 404, `pods \"a\" not found`},
		{"protobuf that is none", list, "application/vnd.kubernetes.protobuf", "", "k8s\x00\xff\xffsecret", 502, "malformed protobuf"},
		{"a protobuf watch with a wrong length", watch, "application/vnd.kubernetes.protobuf;stream=watch", "", "\xff\xff\xff\xffsecret", 200, "frame over the limit"},
	} {
		s := filtered(t, seen, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", test.contentType)
			if test.encoding != "" {
				w.Header().Set("Content-Encoding", test.encoding)
			}
			_, _ = io.WriteString(w, test.sent)
		})
		resp, got := wiretest.Get(t, s.URL+test.path)
		if resp.StatusCode != test.status || !bytes.Contains(got, []byte(test.want)) || bytes.Contains(got, []byte(`"secret"`)) || bytes.Contains(got, []byte("htmlsecret")) {
			t.Errorf("%s: %d %s, want %d and %s", test.name, resp.StatusCode, got, test.status, test.want)
		}
		s.Close()
	}
}

// TestRefusals: requests that the filter refuses.
func TestRefusals(t *testing.T) {
	s := filtered(t, seen, func(http.ResponseWriter, *http.Request) { t.Error("the server received a request") })
	for _, test := range []struct {
		method, path string
		fields       []string
		want         int
	}{
		{"GET", "/api/v1/pods", []string{"Accept", "application/yaml"}, 406},
		{"GET", "/api/v1/pods", []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}, 406},
		{"PUT", "/api/v1/namespaces/n/pods/a", nil, 403},
		{"PATCH", "/api/v1/namespaces/n/pods/a/status", nil, 403},
		{"GET", "/api/v1/pods", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 400},
		{"GET", "/api/v1/pods?watch=1", []string{"Connection", "Upgrade", "Upgrade", "SPDY/3.1"}, 400},
		{"CONNECT", "/api/v1/pods?watch=1", nil, 400}, // an extended CONNECT over HTTP/2 would become an upgrade
		{"CONNECT", "/api/v1/watch/pods", nil, 400},
	} {
		r, _ := http.NewRequest(test.method, s.URL+test.path, nil)
		for i := 0; i < len(test.fields); i += 2 {
			r.Header.Set(test.fields[i], test.fields[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var status struct{ Kind, Message string }
		if err := json.NewDecoder(resp.Body).Decode(&status); err != nil || status.Kind != "Status" || status.Message == "" {
			t.Errorf("%s %s: %v %+v", test.method, test.path, err, status)
		}
		resp.Body.Close()
		if resp.StatusCode != test.want {
			t.Errorf("%s %s %v: %d, want %d", test.method, test.path, test.fields, resp.StatusCode, test.want)
		}
	}
}

// TestHeadOfAList: a list without content, in response to a HEAD, is not malformed.
func TestHeadOfAList(t *testing.T) {
	s := filtered(t, seen, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
	})
	resp, err := http.Head(s.URL + "/api/v1/pods")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Length") == "1000" {
		t.Errorf("%s, Content-Length %s", resp.Status, resp.Header.Get("Content-Length"))
	}
}

// TestNegotiate: the request to the server accepts the formats that can be edited, in the client's
// order.
func TestNegotiate(t *testing.T) {
	for accept, want := range map[string]string{
		"":    "application/json",
		"*/*": "application/json",
		"application/vnd.kubernetes.protobuf,application/json":                                                                       "application/vnd.kubernetes.protobuf, application/json",
		"application/vnd.kubernetes.protobuf, */*":                                                                                   "application/vnd.kubernetes.protobuf, application/json",
		"application/json;q=0.5,application/vnd.kubernetes.protobuf;q=0.9":                                                           "application/vnd.kubernetes.protobuf, application/json",
		"application/cbor;q=1,application/json;q=0.9":                                                                                "application/json",
		"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json":            "application/json",
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json":                                              "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io, application/json",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;stream=watch;pretty=1": "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json",
		"application/json;q=0": "",
		"text/html":            "",
	} {
		if got, ok := watchcodec.Negotiate([]string{accept}); got != want || ok != (want != "") {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
}

// TestSetWhereKeysAreSorted: the metadata of a custom resource is in the order of its keys, and a
// new field is set once, at its place.
func TestSetWhereKeysAreSorted(t *testing.T) {
	for before, want := range map[string]string{
		`{"metadata":{"labels":{"a":"1"},"name":"x","resourceVersion":"1","uid":"u"}}`:    `{"metadata":{"labels":{"a":"1"},"name":"x","resourceVersion":"2","uid":"u"}}`,
		`{"metadata":{"labels":{"a":"1"},"name":"x","uid":"u"}}`:                          `{"metadata":{"labels":{"a":"1"},"name":"x","resourceVersion":"2","uid":"u"}}`,
		`{"metadata":{"name":"x","uid":"u","creationTimestamp":null,"labels":{"a":"1"}}}`: `{"metadata":{"name":"x","uid":"u","resourceVersion":"2","creationTimestamp":null,"labels":{"a":"1"}}}`,
		`{"metadata":{"name":"x"}}`: `{"metadata":{"name":"x","resourceVersion":"2"}}`,
		`{"metadata":{}}`:           `{"metadata":{"resourceVersion":"2"}}`,
		`{"kind":"X"}`:              `{"kind":"X","metadata":{"resourceVersion":"2"}}`,
	} {
		var o watchcodec.Object
		if err := o.Parse(watchcodec.JSON, "v1", "X", []byte(before)); err != nil {
			t.Fatal(err)
		}
		if err := o.Edit(watchcodec.Set("2", watchcodec.ResourceVersion()...)); err != nil {
			t.Fatal(err)
		}
		if got := string(o.Value().Raw()); got != want || string(o.ResourceVersion()) != "2" {
			t.Errorf("%s\n%s\nwant\n%s", before, got, want)
		}
	}
}
