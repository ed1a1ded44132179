package watchcodec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/choices"
	"github.com/culvert-go/culvert/watchcodec"
)

// Spellings that no encoder of Kubernetes would write, but others may.
var (
	spelledTexts = []string{`"v"`, `""`, `"\u0061"`, `"a\"b\\"`, `"\/"`, `"é🐟"`, `"\ud83d\udc1f"`, `"{[,:]}"`, `"\u2028\n"`, `"` + strings.Repeat("long \\\\", 20) + `"`}
	spelledOther = []string{"null", "0", "-0", "1.50", "1E+2", "-1e-400", "12345678901234567890123", "true", "false", "[]", "{}"}
	spelledKeys  = []string{`"a"`, `"b"`, `"\u0061"`, `"a!"`, `""`, `"A"`, `"\""`, `"x\\"`, `"é"`, `"\u00e9"`, `"metadata"`, `"items"`, `"{"`, `"zone"`}
	nameOfKeys   = func() (names []string) {
		for _, key := range spelledKeys {
			var name string
			if err := json.Unmarshal([]byte(key), &name); err != nil {
				panic(err)
			}
			names = append(names, name)
		}
		return names
	}()
)

// textHistory is the history of an object of a custom resource, which may be written in any way
// that JSON permits.
type textHistory struct {
	c      *choices.Choices
	spaces bool
	want   *node
	log    []string
}

// space returns white space if the history chooses some.
func (h *textHistory) space() string {
	if !h.spaces {
		return ""
	}
	return choices.Pick(h.c, "", " ", "\n", "\t\r\n ")
}

// value returns the text of a value.
func (h *textHistory) value(depth int) string {
	kind := h.c.Int(6)
	switch {
	case kind < 2:
		return choices.Pick(h.c, spelledTexts...)
	case kind < 4 || depth == 0:
		return choices.Pick(h.c, spelledOther...)
	case kind == 4:
		return h.list('[', h.c.Int(4), func() string { return h.value(depth - 1) })
	}
	return h.members(h.c.Int(5), true, func() string {
		return choices.Pick(h.c, spelledKeys...) + h.space() + ":" + h.space() + h.value(depth-1)
	})
}

func (h *textHistory) list(open byte, n int, next func() string) string {
	var elements []string
	for range n {
		elements = append(elements, h.space()+next()+h.space())
	}
	return string(open) + h.space() + strings.Join(elements, ",") + string(open+2)
}

// members returns an object. It may have a key twice if the history permits it.
func (h *textHistory) members(n int, twice bool, next func() string) string {
	seen := map[string]bool{}
	var list []string
	for range n {
		member := next()
		key, _ := nextToken(json.NewDecoder(strings.NewReader(member)), []byte(member))
		if name := key.(string); twice && h.c.Bool(8) || !seen[name] {
			list, seen[name] = append(list, member), true
		}
	}
	if h.c.Bool(2) {
		slices.SortStableFunc(list, func(a, b string) int {
			x, _ := nextToken(json.NewDecoder(strings.NewReader(a)), []byte(a))
			y, _ := nextToken(json.NewDecoder(strings.NewReader(b)), []byte(b))
			return strings.Compare(x.(string), y.(string))
		})
	}
	at := -1
	return h.list('{', len(list), func() string { at++; return list[at] })
}

// texts returns an object of texts.
func (h *textHistory) texts() string {
	return h.members(h.c.Int(4), false, func() string {
		return choices.Pick(h.c, spelledKeys...) + ":" + h.space() + choices.Pick(h.c, spelledTexts...)
	})
}

// object returns the text of an object.
func (h *textHistory) object() string {
	metadata := func() string {
		key := choices.Pick(h.c, "name", "namespace", "uid", "resourceVersion", "labels", "annotations", "managedFields", "own", "generation")
		value := choices.Pick(h.c, spelledTexts...)
		switch {
		case h.c.Bool(10):
			value = "null"
		case key == "labels" || key == "annotations":
			value = h.texts()
		case key == "managedFields" || key == "own":
			value = h.value(2)
		case key == "generation":
			value = "1"
		}
		return `"` + key + `":` + h.space() + value
	}
	return h.members(2+h.c.Int(5), false, func() string {
		switch key := choices.Pick(h.c, "metadata", "spec", "kind", "apiVersion", "status", "data"); key {
		case "metadata":
			if h.c.Bool(12) {
				return `"metadata":null`
			}
			return `"metadata"` + h.space() + ":" + h.members(h.c.Int(8), false, metadata)
		case "kind", "apiVersion":
			return `"` + key + `":` + choices.Pick(h.c, `"v"`, `"Pod"`, `"\u0050od"`)
		default:
			return `"` + key + `":` + h.space() + h.value(4)
		}
	})
}

// path chooses a path into the object, mostly to an existing value.
func (h *textHistory) path() (path watchcodec.Path) {
	n := h.want
	for {
		name := choices.Pick(h.c, nameOfKeys...)
		if n != nil && n.kind == '{' && len(n.keys) > 0 && !h.c.Bool(3) {
			name = n.keys[h.c.Int(len(n.keys))].text
		}
		f := watchcodec.Key(name)
		if h.c.Bool(2) {
			f.Number = 100 // a field of a typed object, with a number after those of metadata
		}
		f.OmitEmpty = h.c.Bool(3)
		path = append(path, f)
		if n != nil {
			n = n.last(name)
		}
		if n != nil && n.kind == '[' && len(n.values) > 0 {
			n = n.values[h.c.Int(len(n.values))]
		}
		if h.c.Bool(3) || len(path) > 5 {
			return path
		}
	}
}

// edit chooses an edit, and applies the same to the reference.
func (h *textHistory) edit() (watchcodec.Edit, *textEdit) {
	path := h.path()
	if typed(path) {
		h.log = append(h.log, fmt.Sprintf("delete %v", path))
		return watchcodec.Delete(path...), &textEdit{path: path}
	}
	switch h.c.Int(4) {
	case 0:
		h.log = append(h.log, fmt.Sprintf("delete %v", path))
		return watchcodec.Delete(path...), &textEdit{path: path}
	case 1:
		parity := h.c.Int(3)
		keep := func(raw string) bool { return len(raw)%3 != parity }
		h.log = append(h.log, fmt.Sprintf("keep %v, but lengths of 3n+%d", path, parity))
		return watchcodec.Keep(func(v watchcodec.Value) bool { return keep(compact(v.Raw())) }, path...), &textEdit{path: path, keep: keep}
	case 2:
		value := choices.Pick(h.c, oddValues...)
		h.log = append(h.log, fmt.Sprintf("set %v to %q", path, value))
		return watchcodec.Set(value, path...), &textEdit{path: path, set: string(must(json.Marshal(value)))}
	}
	inMetadata := path[0].Name == "metadata"
	value := choices.Pick(h.c, spelledTexts...)
	if !inMetadata {
		value = compact([]byte(h.value(2)))
	}
	h.log = append(h.log, fmt.Sprintf("set %v to the text %s", path, value))
	return watchcodec.SetRaw(value, "", path...), &textEdit{path: path, set: value}
}

// typed reports whether the value at the path must be of a type, which SetRaw does not check.
func typed(path watchcodec.Path) bool {
	texts := []string{"kind", "apiVersion", "name", "namespace", "uid", "resourceVersion"}
	inMetadata := path[0].Name == "metadata"
	return slices.Contains(texts, path[0].Name) || inMetadata && (len(path) < 3 || slices.Contains(texts, path[1].Name))
}

func compact(raw []byte) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		panic(err)
	}
	return b.String()
}

// TestTextHistories: a sequence of edits changes its values wherever they are and however they are
// written, and nothing else: keys, texts and numbers keep their spelling, members their order.
func TestTextHistories(t *testing.T) {
	histories.Run(t, func(_ *testing.T, c *choices.Choices) error {
		var o watchcodec.Object // its memory is reused for each object
		for range 1 + c.Int(2) {
			h := &textHistory{c: c, spaces: c.Bool(2)}
			text := h.object()
			if err := h.run(&o, text); err != nil {
				return fmt.Errorf("%s after %q: %w", text, h.log, err)
			}
		}
		return nil
	})
}

func (h *textHistory) run(o *watchcodec.Object, text string) (err error) {
	if h.want, err = parseNode([]byte(text)); err != nil {
		return err
	}
	if err := o.Parse(watchcodec.JSON, "v1", "Thing", []byte(text)); err != nil {
		return err
	}
	for range 1 + h.c.Int(6) {
		edit, same := h.edit()
		_, wrong := same.object(h.want, same.path)
		if err := o.Edit(edit); err != nil || wrong != nil {
			if (err == nil) != (wrong == nil) {
				return fmt.Errorf("the error %v, want %v", err, wrong)
			}
			return nil // the object must not be used any more
		}
		got, err := parseNode(o.Value().Raw())
		if err == nil {
			err = alike(got, h.want)
		}
		if err != nil {
			return fmt.Errorf("became %s: %w", o.Value().Raw(), err)
		}
		h.want = got // includes the new members
		if err := h.reads(o); err != nil {
			return fmt.Errorf("became %s: %w", o.Value().Raw(), err)
		}
	}
	return nil
}

// reads compares the values read of an object with the reference.
func (h *textHistory) reads(o *watchcodec.Object) error {
	path := h.path()
	want := h.want
	for _, f := range path {
		if want = want.last(f.Name); want == nil {
			break
		}
	}
	got, ok := o.Value().Get(path...)
	if ok != (want != nil) || ok && compact(got.Raw()) != want.String() {
		return fmt.Errorf("%v is %s, %v, want %v", path, got.Raw(), ok, want)
	}
	text, isText := got.Text()
	var wanted *string
	if ok && json.Unmarshal([]byte(want.String()), &wanted) == nil && wanted != nil {
		if !isText || string(text) != *wanted {
			return fmt.Errorf("%v is the text %q, %v, want %q", path, text, isText, *wanted)
		}
	} else if isText {
		return fmt.Errorf("%v is the text %q, and should be none", path, text)
	}
	elements := 0
	for v := range o.Value().Elements(path...) {
		if want == nil || elements >= len(want.values) || compact(v.Raw()) != want.values[elements].String() {
			return fmt.Errorf("element %d of %v is %s", elements, path, v.Raw())
		}
		elements++
	}
	if want != nil && want.kind == '[' && elements != len(want.values) {
		return fmt.Errorf("%d elements of %v", elements, path)
	}
	return h.readsMetadata(o)
}

// readsMetadata compares the metadata that an object's methods return with the reference.
func (h *textHistory) readsMetadata(o *watchcodec.Object) error {
	text := func(n *node, or string) string {
		var s *string
		if n == nil || json.Unmarshal([]byte(n.String()), &s) != nil || s == nil {
			return or
		}
		return *s
	}
	metadata := h.want.last("metadata")
	if metadata == nil {
		metadata = &node{kind: '{'}
	}
	for _, part := range []struct{ what, got, want string }{
		{"kind", string(o.Kind()), text(h.want.last("kind"), "")},
		{"name", string(o.Name()), text(metadata.last("name"), "")},
		{"namespace", string(o.Namespace()), text(metadata.last("namespace"), "")},
		{"uid", string(o.UID()), text(metadata.last("uid"), "")},
		{"resourceVersion", string(o.ResourceVersion()), text(metadata.last("resourceVersion"), "")},
	} {
		if part.got != part.want && part.what != "kind" || part.want != "" && part.got != part.want {
			return fmt.Errorf("%s %q, want %q", part.what, part.got, part.want)
		}
	}
	for _, key := range nameOfKeys {
		var want *node
		if labels := metadata.last("labels"); labels != nil {
			want = labels.last(key)
		}
		if label, ok := o.Label(key); string(label) != text(want, "") || ok && want == nil {
			return fmt.Errorf("label %q is %q, want %v", key, label, want)
		}
	}
	return nil
}
