package watchcodec_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carpv1 "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/culvert-go/culvert/internal/choices"
	"github.com/culvert-go/culvert/watchcodec"
)

var histories = choices.NewFlags(1500, 300)

const carpKind = "Carp"

var carpVersion = carpv1.SchemeGroupVersion.String()

// oddKeys sort differently as JSON, with quotes and escapes, than as plain text.
var (
	oddKeys   = []string{"a", "app", "a b", "a!", "", "<", "A", `a"b`, `\`, "\u00e9", "\u2028", "\U0001f41f", "example.org/key", "\x01", "zone"}
	oddValues = []string{"v", "", "web", `a "b" \`, "<&>", "\u00e9\u2028", "\U0001f41f", "null", "\n\t\x00", "12", string(bytes.Repeat([]byte("long "), 60))}
)

func oddMap(c *choices.Choices) map[string]string {
	var m map[string]string
	for range c.Int(4) {
		if m == nil {
			m = map[string]string{}
		}
		m[choices.Pick(c, oddKeys...)] = choices.Pick(c, oddValues...)
	}
	return m
}

// some returns a pointer to one of the values, or nil.
func some[T any](c *choices.Choices, values ...T) *T {
	if n := c.Int(len(values) + 1); n > 0 {
		return &values[n-1]
	}
	return nil
}

func text(c *choices.Choices) string { return choices.Pick(c, oddValues...) }

// newCarp returns a Carp, an object of apimachinery with all that the objects of k8s.io/api have.
func newCarp(c *choices.Choices) *carpv1.Carp {
	o := &carpv1.Carp{TypeMeta: metav1.TypeMeta{Kind: carpKind, APIVersion: carpVersion}}
	at := metav1.NewTime(time.Unix(1700000000, 0))
	m := &o.ObjectMeta
	m.Name, m.Namespace, m.GenerateName = "n"+text(c), choices.Pick(c, "ns", ""), choices.Pick(c, "", "g-")
	m.UID, m.ResourceVersion, m.Generation = types.UID(choices.Pick(c, "", "u")), choices.Pick(c, "1", "", "200"), choices.Pick[int64](c, 0, 1, -1, 1<<40)
	m.Labels, m.Annotations = oddMap(c), oddMap(c)
	m.CreationTimestamp, m.DeletionTimestamp, m.DeletionGracePeriodSeconds = choices.Pick(c, metav1.Time{}, at), some(c, at), some(c, int64(0), 30)
	for range c.Int(4) {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "apps/v1", Kind: choices.Pick(c, oddKeys...), Name: text(c), UID: "x", Controller: some(c, false, true)})
	}
	for range c.Int(3) {
		m.Finalizers = append(m.Finalizers, text(c))
	}
	for range c.Int(3) {
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: text(c), Operation: "Apply", Time: some(c, at), FieldsV1: choices.Pick(c, nil, metav1.NewFieldsV1(`{"f:spec":{"f:a":{}}}`))})
	}
	o.Spec = carpv1.CarpSpec{
		RestartPolicy: carpv1.RestartPolicy(text(c)), ActiveDeadlineSeconds: some(c, int64(0), -5, 1<<62),
		NodeSelector: oddMap(c), NodeName: text(c), HostPID: c.Bool(2), Hostname: text(c),
	}
	o.Status = newStatus(c)
	return o
}

func newStatus(c *choices.Choices) carpv1.CarpStatus {
	s := carpv1.CarpStatus{Phase: carpv1.CarpPhase(text(c)), Message: text(c), StartTime: some(c, metav1.NewTime(time.Unix(1700000001, 0)))}
	for range c.Int(4) {
		s.Conditions = append(s.Conditions, newCondition(c))
	}
	for range c.Int(3) {
		s.Infos = append(s.Infos, carpv1.CarpInfo{A: int64(c.Int(300)) - 3, B: text(c), C: some(c, oddValues...), Data: text(c)})
	}
	return s
}

func newCondition(c *choices.Choices) carpv1.CarpCondition {
	return carpv1.CarpCondition{Type: carpv1.CarpConditionType(text(c)), Status: "True", Reason: text(c), Message: text(c)}
}

// encodeCarp encodes a Carp as an item of a list.
func encodeCarp(f watchcodec.Format, o *carpv1.Carp) []byte {
	if f == watchcodec.Protobuf {
		return must(o.Marshal())
	}
	return bytes.TrimSuffix(encodeAs(f, o), []byte("\n"))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestEditHistories: a sequence of edits gives what decoding an object with Kubernetes' own codecs,
// changing it and encoding it again gives. Where an edit leaves a field at another place than an
// encoder would, or leaves out an empty one that an encoder writes, the result decodes to the same
// object; otherwise it is the same to the byte.
func TestEditHistories(t *testing.T) {
	histories.Run(t, func(_ *testing.T, c *choices.Choices) error {
		var o watchcodec.Object // its memory is reused for each object
		for range 1 + c.Int(2) {
			h := editHistory{c: c, o: &o, format: choices.Pick(c, watchcodec.JSON, watchcodec.Protobuf), want: newCarp(c), exact: true}
			if err := h.run(); err != nil {
				return err
			}
		}
		return nil
	})
}

// editHistory is the history of one object.
type editHistory struct {
	c       *choices.Choices
	o       *watchcodec.Object
	format  watchcodec.Format
	want    *carpv1.Carp
	exact   bool // every byte is where an encoder has it
	changed bool
	log     []string
}

func (h *editHistory) run() error {
	raw := encodeCarp(h.format, h.want)
	came := bytes.Clone(raw)
	if err := h.o.Parse(h.format, carpVersion, carpKind, raw); err != nil {
		return fmt.Errorf("%q: %w", raw, err)
	}
	for range h.c.Int(6) {
		var batch []watchcodec.Edit
		for range 1 + h.c.Int(4) {
			batch = append(batch, h.edit())
		}
		before := bytes.Clone(h.o.Value().Raw())
		if err := h.o.Edit(batch...); err != nil {
			return h.failed(came, err)
		}
		h.changed = h.changed || !bytes.Equal(before, h.o.Value().Raw())
		if err := h.compare(); err != nil {
			return h.failed(came, err)
		}
	}
	switch {
	case !bytes.Equal(raw, came):
		return h.failed(came, fmt.Errorf("the input bytes have become %q", raw))
	case h.o.Changed() && !h.changed && len(h.log) == 0, !h.o.Changed() && h.changed:
		return h.failed(came, fmt.Errorf("changed is %v", h.o.Changed()))
	}
	if err := h.parts(); err != nil {
		return h.failed(came, err)
	}
	return nil
}

func (h *editHistory) failed(came []byte, err error) error {
	return fmt.Errorf("%q after %q: %w", came, h.log, err)
}

// compare compares the object with the reference. In half of the cases it reads some value first.
func (h *editHistory) compare() error {
	if h.c.Bool(2) {
		if got := string(h.o.Name()); got != h.want.Name {
			return fmt.Errorf("the name is %q, want %q", got, h.want.Name)
		}
	}
	got, want := h.o.Value().Raw(), encodeCarp(h.format, h.want)
	if h.exact && !bytes.Equal(got, want) {
		return fmt.Errorf("got\n%q\nwant\n%q", got, want)
	}
	decoded, err := decodeCarp(h.format, got)
	if err != nil {
		return fmt.Errorf("%q: %w", got, err)
	}
	decoded.TypeMeta = h.want.TypeMeta
	if again := encodeCarp(h.format, decoded); !bytes.Equal(again, want) {
		return fmt.Errorf("%q\ndecodes to\n%q\nwant\n%q", got, again, want)
	}
	return nil
}

// parts compares the values that the object's methods return with the reference.
func (h *editHistory) parts() error {
	o, want := h.o, h.want
	for _, part := range []struct{ what, got, want string }{
		{"kind", string(o.Kind()), carpKind}, {"apiVersion", string(o.APIVersion()), carpVersion},
		{"namespace", string(o.Namespace()), want.Namespace}, {"uid", string(o.UID()), string(want.UID)},
		{"resourceVersion", string(o.ResourceVersion()), want.ResourceVersion},
	} {
		if part.got != part.want {
			return fmt.Errorf("%s %q, want %q", part.what, part.got, part.want)
		}
	}
	if !maps.Equal(o.Labels(), want.Labels) || !maps.Equal(o.Annotations(), want.Annotations) {
		return fmt.Errorf("labels %q and annotations %q, want %q and %q", o.Labels(), o.Annotations(), want.Labels, want.Annotations)
	}
	for _, key := range oddKeys {
		label, has := o.Label(key)
		value, wanted := want.Labels[key]
		inPath, hasToo := o.Value().Get(watchcodec.Label(key)...)
		inPathText, _ := inPath.Text()
		if has != wanted || string(label) != value || hasToo != has || string(inPathText) != value {
			return fmt.Errorf("label %q is %q, %v, and by its path %q, %v, want %q", key, label, has, inPath.Raw(), hasToo, value)
		}
	}
	var messages []string
	for v := range o.Value().Elements(toStatus, toConditions) {
		message, _ := v.Get(watchcodec.Field{Name: "message", Number: 6})
		text, _ := message.Text()
		messages = append(messages, string(text))
	}
	if !slices.EqualFunc(messages, want.Status.Conditions, func(m string, c carpv1.CarpCondition) bool { return m == c.Message }) {
		return fmt.Errorf("the messages of the conditions are %q", messages)
	}
	if sealed := o.AppendResponse(nil); h.exact && !bytes.Equal(sealed, encodeAs(h.format, want)) {
		return fmt.Errorf("sealed\n%q\nwant\n%q", sealed, encodeAs(h.format, want))
	}
	return nil
}
