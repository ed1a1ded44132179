package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/culvert-go/culvert/watchcodec"
)

// change is one edit, and what it is to a typed object.
type change struct {
	name  string
	edits func(kind string) []watchcodec.Edit
	typed func(runtime.Object)
}

var endpointsField = watchcodec.Field{Name: "endpoints", Number: 2}

// ofZoneA reports whether an endpoint is in the zone "a".
func ofZoneA(v watchcodec.Value) bool {
	zone, ok := v.Get(watchcodec.Field{Name: "zone", Number: 7})
	text, isText := zone.Text()
	return ok && isText && strings.HasSuffix(string(text), "a")
}

// ofOddNode reports whether an address is on a node with an odd number.
func ofOddNode(v watchcodec.Value) bool {
	node, ok := v.Get(watchcodec.Field{Name: "nodeName", Number: 4})
	text, isText := node.Text()
	return ok && isText && odd(string(text))
}

func odd(node string) bool { return node != "" && node[len(node)-1]&1 == 1 }

var changes = []change{
	{"nothing", func(string) []watchcodec.Edit { return nil }, func(runtime.Object) {}},
	{"managedFields", func(string) []watchcodec.Edit {
		return []watchcodec.Edit{watchcodec.Delete(watchcodec.ManagedFields()...)}
	},
		func(o runtime.Object) { accessor(o).SetManagedFields(nil) }},
	{"labels", func(string) []watchcodec.Edit {
		return []watchcodec.Edit{
			watchcodec.Set(`a "b" é`, watchcodec.Label("m")...),
			watchcodec.Set("first", watchcodec.Label("Aaa")...),
			watchcodec.Set("last", watchcodec.Label("zzz.example/x")...),
			watchcodec.Delete(watchcodec.Label("app")...),
			watchcodec.Delete(watchcodec.Annotation("topologyKeys")...),
			watchcodec.Set("77", watchcodec.Metadata(watchcodec.Field{Name: "resourceVersion", Number: 6})...),
		}
	}, func(o runtime.Object) {
		a := accessor(o)
		labels := a.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["m"], labels["Aaa"], labels["zzz.example/x"] = `a "b" é`, "first", "last"
		delete(labels, "app")
		a.SetLabels(labels)
		annotations := a.GetAnnotations()
		delete(annotations, "topologyKeys")
		a.SetAnnotations(annotations)
		a.SetResourceVersion("77")
	}},
	{"endpoints", func(kind string) []watchcodec.Edit {
		if kind != "EndpointSlice" {
			return nil
		}
		return []watchcodec.Edit{watchcodec.Keep(ofZoneA, endpointsField)}
	}, func(o runtime.Object) {
		if slice, ok := o.(*discoveryv1.EndpointSlice); ok && slice.Endpoints != nil {
			slice.Endpoints = slices.DeleteFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return e.Zone == nil || !strings.HasSuffix(*e.Zone, "a") })
		}
	}},
	{"addresses", func(kind string) []watchcodec.Edit {
		if kind != "Endpoints" {
			return nil
		}
		return []watchcodec.Edit{watchcodec.Keep(ofOddNode, watchcodec.Field{Name: "subsets", Number: 2, OmitEmpty: true}, watchcodec.Field{Name: "addresses", Number: 1, OmitEmpty: true})}
	}, func(o runtime.Object) {
		//lint:ignore SA1019 servers still have it
		if endpoints, ok := o.(*corev1.Endpoints); ok {
			for i := range endpoints.Subsets {
				subset := &endpoints.Subsets[i]
				subset.Addresses = slices.DeleteFunc(subset.Addresses, func(a corev1.EndpointAddress) bool { return a.NodeName == nil || !odd(*a.NodeName) })
			}
		}
	}},
}

func accessor(o runtime.Object) metav1.Object {
	a, err := meta.Accessor(o)
	if err != nil {
		return &metav1.ObjectMeta{} // a Status
	}
	return a
}

// codecs are Kubernetes' own.
var codecs = map[watchcodec.Format]runtime.Serializer{
	watchcodec.JSON:     json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{}),
	watchcodec.Protobuf: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme),
}

// TestEditsAsTheKubernetesCodecs: of every event that a real kube-apiserver has sent, what
// an edit of its bytes gives is what decoding it with Kubernetes' own codecs, changing
// the object and encoding it gives, to the byte, in JSON and in protobuf.
func TestEditsAsTheKubernetesCodecs(t *testing.T) {
	compared := map[string]int{}
	for _, r := range watchRecordings(t) {
		for _, c := range changes {
			compared[c.name] += compare(t, r, c, codecs[r.format])
		}
	}
	for name, n := range compared {
		if n < 1000 {
			t.Errorf("%s: %d events compared", name, n)
		}
	}
}

type watchRecording struct {
	name   string
	format watchcodec.Format
	body   []byte
}

// watchRecordings are the watches of typed objects in the testdata of watchcodec.
func watchRecordings(t *testing.T) []watchRecording {
	return recordings(t, func(_, target string) bool { return strings.Contains(target, "watch=") })
}

// recordings returns the recorded responses of typed objects in the testdata of watchcodec for which keep
// returns true.
func recordings(t *testing.T, keep func(name, target string) bool) (all []watchRecording) {
	t.Helper()
	dir := "../../watchcodec/testdata/recordings"
	for line := range strings.Lines(string(readFile(t, filepath.Join(dir, "index.tsv")))) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if f[3] != "200" || strings.Contains(f[2], "as=") || !keep(f[0], f[1]) {
			continue
		}
		r := watchRecording{name: f[0], body: unzip(t, readFile(t, filepath.Join(dir, f[0]+".gz")))}
		if strings.Contains(f[4], "protobuf") {
			r.format = watchcodec.Protobuf
		}
		if f[5] == "gzip" {
			r.body = unzip(t, r.body)
		}
		all = append(all, r)
	}
	return all
}

func readFile(t *testing.T, name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func unzip(t *testing.T, b []byte) []byte {
	z, err := gzip.NewReader(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		t.Fatal(err)
	}
	b, err = io.ReadAll(z)
	if err != nil && err != io.ErrUnexpectedEOF { // the recording was stopped there
		t.Fatal(err)
	}
	return b
}

// compare returns how many events were compared.
func compare(t *testing.T, r watchRecording, c change, codec runtime.Serializer) (n int) {
	t.Helper()
	var frames interface{ Next() ([]byte, error) } = watchcodec.NewJSONReader(bytes.NewReader(r.body), 0)
	if r.format == watchcodec.Protobuf {
		frames = watchcodec.NewProtobufReader(bytes.NewReader(r.body), 0)
	}
	var e watchcodec.Event
	for ; ; n++ {
		frame, err := frames.Next()
		if err == io.EOF {
			return n
		}
		if err == nil {
			err = e.Decode(r.format, frame)
		}
		if err != nil {
			t.Errorf("%s, event %d: %v", r.name, n, err)
			return n
		}
		want := typedRoundTrip(t, r, frame, c, codec)
		if string(e.Object.Kind()) == "Status" {
			continue
		}
		if err := e.Object.Edit(c.edits(string(e.Object.Kind()))...); err != nil {
			t.Errorf("%s, event %d, %s: %v", r.name, n, c.name, err)
			return n
		}
		got, err := e.Append(nil)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s, event %d, %s: %v\n%q\nwant\n%q", r.name, n, c.name, err, got, want)
			return n
		}
	}
}

// typedRoundTrip is what a gateway does that decodes.
func typedRoundTrip(t *testing.T, r watchRecording, frame []byte, c change, codec runtime.Serializer) []byte {
	t.Helper()
	var event metav1.WatchEvent
	var err error
	if r.format == watchcodec.Protobuf {
		err = event.Unmarshal(frame)
	} else {
		_, _, err = codec.Decode(frame, nil, &event)
	}
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	object, _, err := codec.Decode(event.Object.Raw, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	c.typed(object)
	var encoded bytes.Buffer
	if err := codec.Encode(object, &encoded); err != nil {
		t.Fatal(err)
	}
	return appendTypedEvent(t, nil, r.format, event.Type, encoded.Bytes())
}

// appendTypedEvent appends an event of an encoded object, as a server sends it.
func appendTypedEvent(t *testing.T, b []byte, format watchcodec.Format, kind string, object []byte) []byte {
	t.Helper()
	if format == watchcodec.JSON {
		return append(b, `{"type":"`+kind+`","object":`+string(bytes.TrimSuffix(object, []byte("\n")))+"}\n"...)
	}
	event := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}
	body, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	n := len(body)
	return append(append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n)), body...)
}
