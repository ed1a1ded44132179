package fieldnames

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// few is for how many fields a table needs no memory but the caller's, and no map.
const few = 20

// table finds the fields of a header section by their names as they are spelt.
type table struct {
	fields []field
	byKey  map[string]int // the places in fields; nil if they are few
}

// field is a field while its lines are put in order.
type field struct {
	key    string
	values []string // those that are left
	named  int      // how many names of the field are left
	placed bool     // the caller writes it; with a value also if it has no name
	odd    bool     // its key is not canonical, so that it has no name
}

// ownLine is the line of the caller's own field.
var ownLine = []string{""}

// newTable returns a table of own, if that is not "", of the fields of h, and of those that are placed, in the memory of room
// if they fit.
func newTable(room []field, own string, h http.Header, placed []string) (t table) {
	t.fields = room
	if own != "" {
		t.fields = append(t.fields, field{key: own, values: ownLine, placed: true})
	}
	for _, key := range placed {
		t.fields = append(t.fields, field{key: key, placed: true})
	}
	for key, values := range h {
		if !slices.Contains(placed, key) {
			t.fields = append(t.fields, field{key: key, values: values, odd: textproto.CanonicalMIMEHeaderKey(key) != key})
		}
	}
	if len(t.fields) > few {
		t.byKey = make(map[string]int, len(t.fields))
		for i, f := range t.fields {
			t.byKey[f.key] = i
		}
	}
	return t
}

// find returns the place of the field of this name, -1 if there is none.
func (t *table) find(name string) int {
	if t.byKey != nil {
		if i, ok := t.byKey[textproto.CanonicalMIMEHeaderKey(name)]; ok {
			return i
		}
		return -1
	}
	for i := range t.fields {
		if f := &t.fields[i]; len(name) == len(f.key) && f.hasName(name) {
			return i
		}
	}
	return -1
}

// hasName reports whether the canonical name, which is as long as the field's key, is that key.
func (f *field) hasName(name string) bool {
	return !f.odd && (name == f.key || strings.EqualFold(name, f.key) && httpguts.ValidHeaderFieldName(name))
}

// yieldNext calls yield with the lines for the next name of the field: one, or for its last name all that are left.
func (f *field) yieldNext(name string, yield func(string, string) bool) bool {
	if f.placed {
		f.values = nil
		return yield(f.key, "")
	}
	n := len(f.values)
	if f.named--; f.named > 0 {
		n = min(n, 1)
	}
	values := f.values[:n]
	f.values = f.values[n:]
	return yieldAll(name, values, yield)
}

// yieldUnnamed calls yield with the lines that have no name. It is called last: it changes the order of the fields.
func (t *table) yieldUnnamed(yield func(string, string) bool) {
	unnamed := slices.DeleteFunc(t.fields, func(f field) bool { return len(f.values) == 0 })
	slices.SortFunc(unnamed, func(a, b field) int { return strings.Compare(a.key, b.key) })
	for _, f := range unnamed {
		if !yieldAll(f.key, f.values, yield) {
			return
		}
	}
}

func yieldAll(name string, values []string, yield func(string, string) bool) bool {
	for _, value := range values {
		if !yield(name, value) {
			return false
		}
	}
	return true
}
