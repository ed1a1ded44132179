package watchcodec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/culvert-go/culvert/watchcodec"
)

// fuzzChoices are the decisions that make an object and its edits. After the last byte they are all
// 0.
type fuzzChoices struct{ p []byte }

func (c *fuzzChoices) below(n int) int {
	if len(c.p) == 0 {
		return 0
	}
	b := c.p[0]
	c.p = c.p[1:]
	return int(b) % n
}

func (c *fuzzChoices) of(words []string) string { return words[c.below(len(words))] }

var (
	editKeys   = []string{"a", "app", "example.org/key", "k8s-app", "zone", "topologyKeys"}
	editValues = []string{"", "v", "web", `a "b"`, "<&>", "\u00e9\u2028", string(bytes.Repeat([]byte("long "), 60))}
)

func (c *fuzzChoices) stringMap() map[string]string {
	var m map[string]string
	for range c.below(4) {
		if m == nil {
			m = map[string]string{}
		}
		m[c.of(editKeys)] = c.of(editValues)
	}
	return m
}

// object has nothing in it that an encoder would leave out in one format only.
func (c *fuzzChoices) object() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	o.Name, o.Namespace, o.UID, o.ResourceVersion = "n"+c.of(editKeys), "ns", types.UID("u"), fmt.Sprint(1+c.below(200))
	o.Labels, o.Annotations = c.stringMap(), c.stringMap()
	for range c.below(4) {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "apps/v1", Kind: c.of(editKeys), Name: "o" + c.of(editValues), UID: "x"})
	}
	for range c.below(3) {
		o.Finalizers = append(o.Finalizers, "f"+c.of(editValues))
	}
	for range c.below(3) {
		o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{Manager: c.of(editValues), Operation: "Apply", APIVersion: "v1"})
	}
	return o
}

var (
	toMetadata   = watchcodec.Field{Name: "metadata", Number: 1}
	toOwners     = watchcodec.Field{Name: "ownerReferences", Number: 13, OmitEmpty: true}
	toFinalizers = watchcodec.Field{Name: "finalizers", Number: 14, OmitEmpty: true}
	toName       = watchcodec.Field{Name: "name", Number: 1}
	toOwnerKind  = watchcodec.Field{Name: "kind", Number: 1}
	toOwnerName  = watchcodec.Field{Name: "name", Number: 3}
)

// edit returns an edit and the same change of a decoded object.
func (c *fuzzChoices) edit() (e watchcodec.Edit, same func(*metav1.PartialObjectMetadata)) {
	key, value, parity := c.of(editKeys), c.of(editValues), c.below(3)
	keeps := func(text string) bool { return parity == 2 || len(text)%2 == parity }
	set := func(m map[string]string) map[string]string {
		m = maps.Clone(m)
		if m == nil {
			m = map[string]string{}
		}
		m[key] = value
		return m
	}
	switch c.below(12) {
	case 0:
		return watchcodec.Set(value, watchcodec.Label(key)...), func(o *metav1.PartialObjectMetadata) { o.Labels = set(o.Labels) }
	case 1:
		return watchcodec.Set(value, watchcodec.Annotation(key)...), func(o *metav1.PartialObjectMetadata) { o.Annotations = set(o.Annotations) }
	case 2:
		return watchcodec.Delete(watchcodec.Label(key)...), func(o *metav1.PartialObjectMetadata) { delete(o.Labels, key) }
	case 3:
		return watchcodec.Delete(watchcodec.Annotation(key)...), func(o *metav1.PartialObjectMetadata) { delete(o.Annotations, key) }
	case 4:
		return watchcodec.Delete(watchcodec.ManagedFields()...), func(o *metav1.PartialObjectMetadata) { o.ManagedFields = nil }
	case 5:
		return watchcodec.Set("rv"+value, watchcodec.ResourceVersion()...), func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "rv" + value }
	case 6:
		return watchcodec.Delete(toMetadata, watchcodec.Field{Name: "labels", Number: 11, OmitEmpty: true}), func(o *metav1.PartialObjectMetadata) { o.Labels = nil }
	case 7:
		return watchcodec.Keep(func(v watchcodec.Value) bool {
				text, _ := v.Get(toOwnerName)
				name, _ := text.Text()
				return keeps(string(name))
			}, toMetadata, toOwners), func(o *metav1.PartialObjectMetadata) {
				o.OwnerReferences = slices.DeleteFunc(slices.Clone(o.OwnerReferences), func(r metav1.OwnerReference) bool { return !keeps(r.Name) })
			}
	case 8:
		return watchcodec.Keep(func(v watchcodec.Value) bool {
				text, _ := v.Text()
				return keeps(string(text))
			}, toMetadata, toFinalizers), func(o *metav1.PartialObjectMetadata) {
				o.Finalizers = slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return !keeps(f) })
			}
	case 9:
		return watchcodec.Delete(toMetadata, toFinalizers), func(o *metav1.PartialObjectMetadata) { o.Finalizers = nil }
	case 10: // nothing in it, for any object
		return watchcodec.Delete(watchcodec.Annotation("absent")...), func(*metav1.PartialObjectMetadata) {}
	}
	return watchcodec.Set("n"+value, toMetadata, toName), func(o *metav1.PartialObjectMetadata) { o.Name = "n" + value }
}

// ownerEdit applies edits to the elements of a list, which must exist.
func ownerEdit(value string) (watchcodec.Edit, func(*metav1.PartialObjectMetadata)) {
	return watchcodec.Set(value, toMetadata, toOwners, toOwnerKind), func(o *metav1.PartialObjectMetadata) {
		for i := range o.OwnerReferences {
			o.OwnerReferences[i].Kind = value
		}
	}
}

// encodeTyped encodes an object as an item of a list is.
func encodeTyped(t *testing.T, f watchcodec.Format, o *metav1.PartialObjectMetadata) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	if f == watchcodec.Protobuf {
		raw, err = o.Marshal()
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// FuzzEdits: a sequence of edits gives, to the byte, what decoding the object, changing it and
// encoding it again gives, in both formats, even if some of the edits change nothing and the object
// is read between them.
func FuzzEdits(f *testing.F) {
	f.Add([]byte{0, 0, 3, 1, 1, 2, 2, 3, 3, 2, 1, 1})
	rnd := rand.New(rand.NewPCG(13, 15))
	for range 300 {
		p := make([]byte, 20+rnd.IntN(120))
		for i := range p {
			p[i] = byte(rnd.UintN(256))
		}
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		for _, format := range []watchcodec.Format{watchcodec.JSON, watchcodec.Protobuf} {
			runEdits(t, format, fuzzChoices{p})
		}
	})
}

func runEdits(t *testing.T, format watchcodec.Format, c fuzzChoices) {
	t.Helper()
	want := c.object()
	raw := encodeTyped(t, format, want)
	came := bytes.Clone(raw)
	var o watchcodec.Object
	if err := o.Parse(format, "v1", "Pod", raw); err != nil {
		t.Fatal(err)
	}
	for n := 0; len(c.p) > 0 && n < 40; n++ {
		var batch []watchcodec.Edit
		for range 1 + c.below(4) {
			e, same := c.edit()
			if len(want.OwnerReferences) > 0 && c.below(8) == 0 {
				e, same = ownerEdit(c.of(editValues))
			}
			same(want)
			batch = append(batch, e)
		}
		if err := o.Edit(batch...); err != nil {
			t.Fatal(err)
		}
		if c.below(2) == 0 && (string(o.Name()) != want.Name || string(o.ResourceVersion()) != want.ResourceVersion || string(o.Kind()) != "Pod") {
			t.Fatalf("%s %s at %s, want Pod %s at %s", o.Kind(), o.Name(), o.ResourceVersion(), want.Name, want.ResourceVersion)
		}
		if encoded := encodeTyped(t, format, want); !bytes.Equal(o.Value().Raw(), encoded) {
			t.Fatalf("after %d calls of Edit\n%q\nwant\n%q", n+1, o.Value().Raw(), encoded)
		}
	}
	if string(o.Kind()) != "Pod" || string(o.APIVersion()) != "v1" || !bytes.Equal(raw, came) {
		t.Errorf("%s %s; the object that was passed in: %q, was %q", o.APIVersion(), o.Kind(), raw, came)
	}
	if equal := bytes.Equal(o.Value().Raw(), came); !equal && !o.Changed() {
		t.Error("an edited object reports that it was not changed")
	}
}

// TestEditThatChangesNothing: an edit that changes nothing keeps the result of earlier edits for
// later ones.
func TestEditThatChangesNothing(t *testing.T) {
	nothing := watchcodec.Delete(watchcodec.Annotation("absent")...)
	for _, format := range []watchcodec.Format{watchcodec.JSON, watchcodec.Protobuf} {
		want := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}}}
		var o watchcodec.Object
		if err := o.Parse(format, "v1", "Pod", encodeTyped(t, format, want)); err != nil {
			t.Fatal(err)
		}
		if err := o.Edit(nothing); err != nil || o.Changed() {
			t.Fatalf("changed is %v after an edit that changes nothing: %v", o.Changed(), err)
		}
		for _, key := range []string{"b", "c", "a", "d", "0"} {
			want.Labels[key] = "a text that makes the object longer"
			if err := o.Edit(watchcodec.Set(want.Labels[key], watchcodec.Label(key)...), nothing); err != nil {
				t.Fatal(err)
			}
			if encoded := encodeTyped(t, format, want); !bytes.Equal(o.Value().Raw(), encoded) {
				t.Errorf("%q\nwant\n%q", o.Value().Raw(), encoded)
			}
		}
	}
}

// TestKindAfterEdits: the kind is the object's, even if its memory is reused.
func TestKindAfterEdits(t *testing.T) {
	var o watchcodec.Object
	if err := o.Parse(watchcodec.JSON, "v1", "Pod", []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web"}}`)); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"1", "a longer text", "3", "a text that is longer still"} {
		for _, path := range []watchcodec.Path{watchcodec.Label("a"), watchcodec.Annotation("b")} {
			if err := o.Edit(watchcodec.SetRaw(`"`+value+`"`, value, watchcodec.Field{Name: "aaa"}), watchcodec.Set(value, path...)); err != nil {
				t.Fatal(err)
			}
			if name, kind, version := string(o.Name()), string(o.Kind()), string(o.APIVersion()); name != "web" || kind != "Pod" || version != "v1" {
				t.Errorf("%s %s %s in %s", version, kind, name, o.Value().Raw())
			}
		}
	}
	kinds := []string{"Service", "EndpointSlice", "Node"}
	for _, kind := range kinds {
		if err := o.Edit(watchcodec.Set(kind, watchcodec.Field{Name: "kind"})); err != nil {
			t.Fatal(err)
		}
		if got := string(o.Kind()); got != kind {
			t.Errorf("kind %s, want %s", got, kind)
		}
	}
}

// TestRecordingsEditedInAnyOrder: a sequence of edits, some of which change nothing, gives for each
// event of every recording what the same edits give one at a time, each on a copy.
func TestRecordingsEditedInAnyOrder(t *testing.T) {
	edits := []watchcodec.Edit{
		watchcodec.Delete(watchcodec.Annotation("absent")...),
		watchcodec.Set("a text", watchcodec.Label("zone")...),
		watchcodec.Delete(watchcodec.ManagedFields()...),
		watchcodec.Set(`a longer text, with "quotes"`, watchcodec.Annotation("culvert.example/note")...),
	}
	events := 0
	for _, r := range recorded(t, isWatch) {
		n := events
		_, _, err := pass(r.format(), bytes.NewReader(r.body(t)), func(e *watchcodec.Event) error {
			kind := string(e.Object.Kind())
			if e.Type == watchcodec.Error || kind == "Table" {
				return nil
			}
			version := string(e.Object.APIVersion())
			want := bytes.Clone(e.Object.Value().Raw())
			sequence := append(slices.Clone(edits[n%len(edits):]), edits[:n%len(edits)]...)
			sequence = append(append(sequence, edits[0]), watchcodec.Set("another text", watchcodec.Label("zone")...), watchcodec.Delete(watchcodec.Label("absent")...), watchcodec.Set("1", watchcodec.Label("a")...))
			n++
			for _, edit := range sequence {
				var one watchcodec.Object
				if err := one.Parse(r.format(), version, kind, bytes.Clone(want)); err != nil {
					return err
				}
				if err := one.Edit(edit); err != nil {
					return err
				}
				want = one.Value().Raw()
			}
			if err := e.Object.Edit(sequence...); err != nil {
				return err
			}
			if !bytes.Equal(e.Object.Value().Raw(), want) {
				return fmt.Errorf("edited at once\n%q\none by one\n%q", e.Object.Value().Raw(), want)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
		events = n
	}
	if events < 1000 {
		t.Errorf("%d events in all recordings", events)
	}
}
