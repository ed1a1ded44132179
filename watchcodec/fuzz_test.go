package watchcodec_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/culvert-go/culvert/watchcodec"
)

// seeds are events of real watches.
func seeds(f *testing.F, format watchcodec.Format) {
	for _, r := range recorded(f, func(r recording) bool { return isWatch(r) && r.format() == format }) {
		frames := newReader(format, bytes.NewReader(r.body(f)))
		for range 3 {
			if frame, err := frames.Next(); err == nil && len(frame) < 4<<10 {
				f.Add(bytes.Clone(frame))
			}
		}
	}
}

var fuzzEdits = []watchcodec.Edit{
	watchcodec.Delete(watchcodec.ManagedFields()...),
	watchcodec.Set("v", watchcodec.Label("k")...),
	watchcodec.Delete(watchcodec.Annotation("topologyKeys")...),
	watchcodec.Keep(func(v watchcodec.Value) bool { return len(v.Raw())%2 == 0 }, watchcodec.Field{Name: "endpoints", Number: 2}),
}

// FuzzJSONEvent: valid JSON is kept valid, and the values that are read of an event are those that
// encoding/json reads.
func FuzzJSONEvent(f *testing.F) {
	seeds(f, watchcodec.JSON)
	f.Add([]byte(`{"type":"ADDED","object":{"metadata":{"name":"\u0061","labels":{}},"endpoints":[1,[],{}]}}`))
	f.Add([]byte(` { "object" : { "metadata" : { "labels" : { "z" : "1" } } } , "type" : "MODIFIED" } `))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var e watchcodec.Event
		if e.Decode(watchcodec.JSON, frame) != nil || !json.Valid(frame) || !utf8.Valid(frame) { // encoding/json replaces invalid UTF-8
			return
		}
		var typed struct {
			Type   string
			Object struct {
				Kind     string
				Metadata struct {
					Name, Namespace, UID string
					Labels               map[string]any
				}
			}
		}
		if json.Unmarshal(frame, &typed) == nil {
			if m := typed.Object.Metadata; string(e.Type) != typed.Type || string(e.Object.Kind()) != typed.Object.Kind || string(e.Object.Name()) != m.Name || string(e.Object.Namespace()) != m.Namespace {
				t.Fatalf("%s: read as %s %s %s/%s", frame, e.Type, e.Object.Kind(), e.Object.Namespace(), e.Object.Name())
			}
		}
		for _, edit := range fuzzEdits {
			if err := e.Object.Edit(edit); err != nil {
				return
			}
			out, err := e.Append(nil)
			if err != nil || !json.Valid(out) {
				t.Fatalf("%q became %q: %v", frame, out, err)
			}
		}
		label, _ := e.Object.Label("k")
		if string(label) != "v" {
			t.Errorf("%q: the label is %q", frame, label)
		}
	})
}

// FuzzProtobufEvent: the values that are read of an event are those that Kubernetes' generated code
// reads, and the result of an edit can be read again.
func FuzzProtobufEvent(f *testing.F) {
	seeds(f, watchcodec.Protobuf)
	f.Fuzz(func(t *testing.T, frame []byte) {
		var e watchcodec.Event
		err := e.Decode(watchcodec.Protobuf, frame)
		typed, typedErr := decodeTyped(frame)
		if err != nil || typedErr != nil {
			return // each of them refuses some events that the other accepts; neither may panic
		}
		if string(e.Object.Name()) != typed.Name || string(e.Object.Namespace()) != typed.Namespace || string(e.Object.UID()) != string(typed.UID) || string(e.Object.ResourceVersion()) != typed.ResourceVersion {
			t.Fatalf("%q: %s/%s, want %s/%s", frame, e.Object.Namespace(), e.Object.Name(), typed.Namespace, typed.Name)
		}
		for key, want := range typed.Labels {
			if got, ok := e.Object.Label(key); !ok || string(got) != want {
				t.Fatalf("%q: label %q is %q, want %q", frame, key, got, want)
			}
		}
		if err := e.Object.Edit(fuzzEdits...); err != nil {
			return
		}
		out, err := e.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		edited, err := decodeTyped(out[4:])
		if err != nil {
			t.Fatalf("%q became %q: %v", frame, out, err)
		}
		if edited.Labels["k"] != "v" || edited.ManagedFields != nil || edited.Name != typed.Name {
			t.Errorf("%q became %+v", frame, edited)
		}
	})
}

func decodeTyped(frame []byte) (object metav1.PartialObjectMetadata, err error) {
	var event metav1.WatchEvent
	if err = event.Unmarshal(frame); err != nil {
		return object, err
	}
	raw, ok := bytes.CutPrefix(event.Object.Raw, []byte("k8s\x00"))
	if !ok {
		return object, io.ErrUnexpectedEOF
	}
	var unknown runtime.Unknown
	if err = unknown.Unmarshal(raw); err != nil {
		return object, err
	}
	return object, object.Unmarshal(unknown.Raw)
}

// FuzzLists: the result for a list does not depend on the pieces that it is received in, and a
// malformed list never ends as a whole one.
func FuzzLists(f *testing.F) {
	f.Add(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1","remainingItemCount":3},"items":[{"metadata":{"name":"a0"}},{"metadata":{"name":"a1"}}]}`, 7, false)
	f.Add("{ \"apiVersion\":\"x/v1\",\n \"items\": [\n {\"metadata\":{\"name\":\"a1\"}} ,\n {\"metadata\":{\"name\":\"a2\"}}\n ], \"kind\":\"XList\" }\n", 1, false)
	f.Add("k8s\x00\x0a\x0d\x0a\x02v1\x12\x07PodList\x12\x00\x1a\x00\x22\x00", 3, true)
	f.Fuzz(func(t *testing.T, list string, size int, protobuf bool) {
		whole, wholeOK := throughFilter(list, len(list)+1, protobuf)
		pieces, piecesOK := throughFilter(list, max(1, size), protobuf)
		if wholeOK != piecesOK || wholeOK && whole != pieces {
			t.Fatalf("%q: whole %q %v, in pieces of %d %q %v", list, whole, wholeOK, size, pieces, piecesOK)
		}
		if wholeOK && !protobuf && json.Valid([]byte(list)) && !json.Valid([]byte(whole)) {
			t.Errorf("%q became %q", list, whole)
		}
	})
}

// throughFilter returns a list without its even items, and reports whether it is complete.
func throughFilter(list string, size int, protobuf bool) (out string, ok bool) {
	f, err := watchcodec.NewFilter(watchcodec.FilterOptions{MaxObject: 1 << 20, Rewriter: func(*http.Request, watchcodec.Request) watchcodec.Rewriter { return notEven }})
	if err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	defer func() {
		if recover() == http.ErrAbortHandler {
			ok = false
		}
	}()
	f(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", map[bool]string{true: "application/vnd.kubernetes.protobuf", false: "application/json"}[protobuf])
		for rest := list; len(rest) > 0; {
			n := min(size, len(rest))
			if _, err := io.Copy(w, strings.NewReader(rest[:n])); err != nil {
				return
			}
			rest = rest[n:]
		}
	})).ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/pods", nil))
	return w.Body.String(), w.Code == http.StatusOK
}

// FuzzEventReader: an EventReader reads from a stream, in pieces of any size, the same events as
// splitting it into frames first and decoding them then.
func FuzzEventReader(f *testing.F) {
	one := `{"type":"ADDED","object":{"metadata":{"name":"a"}}}`
	f.Add([]byte(one+"\n"+one+"\n"), 7, false)
	f.Add([]byte(one+one+" \n{\"type\":\"x\"}\n"+one), 1, false)
	f.Add([]byte("{\n \"type\": \"DELETED\",\n \"object\": {\n }\n}\n"+one+"\n}"), 60, false)
	f.Add([]byte("\x00\x00\x00\x02\x0a\x00\x00\x00\x00\x00"), 3, true)
	f.Fuzz(func(t *testing.T, stream []byte, piece int, protobuf bool) {
		format := watchcodec.JSON
		if protobuf {
			format = watchcodec.Protobuf
		}
		const most = 1 << 12
		events := watchcodec.NewEventReader(&pieces{bytes.NewReader(stream), max(1, piece)}, format, most)
		var frames interface{ Next() ([]byte, error) } = watchcodec.NewJSONReader(bytes.NewReader(stream), most)
		if protobuf {
			frames = watchcodec.NewProtobufReader(bytes.NewReader(stream), most)
		}
		for {
			frame, err := frames.Next()
			var want watchcodec.Event
			if err == nil {
				err = want.Decode(format, frame)
			}
			got, gotErr := events.Next()
			if (err == nil) != (gotErr == nil) || err != nil && err.Error() != gotErr.Error() {
				t.Fatalf("%q: the error is %v, want %v", stream, gotErr, err)
			}
			if err != nil {
				return
			}
			a, errA := got.Append(nil)
			b, errB := want.Append(nil)
			if got.Type != want.Type || !bytes.Equal(a, b) || errA != nil || errB != nil {
				t.Fatalf("%q: read %q %v, want %q %v", stream, a, errA, b, errB)
			}
		}
	})
}
