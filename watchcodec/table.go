package watchcodec

import (
	"errors"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// The parts of a Table (k8s.io/apimachinery/pkg/apis/meta/v1, types.go), which is always in JSON.
const (
	tableKind    = "Table"
	tableColumns = "columnDefinitions"
	tableRows    = "rows"
	rowObject    = "object"
)

var errRow = errors.New("watchcodec: a row of a Table without its object")

// row is a row of a Table, identified by the object that it contains.
type row struct {
	raw    []byte
	at     scan.Span // of the object in raw
	object Object
	bare   bool // the client requested rows without objects
	hidden bool // raw is what the client sees, not what was received
}

// parse parses a row.
func (r *row) parse(raw []byte) (err error) {
	at, ok := scan.FindMember(raw, rowObject)
	if !ok || raw[at.Start] != '{' {
		return errRow
	}
	r.raw, r.at, r.hidden = raw, at, false
	r.object.reset(JSON)
	end, err := r.object.parseText(raw, at.Start)
	if err == nil && end != at.End {
		err = scan.Malformed(end)
	}
	return err
}

// append appends the row as the client sees it.
func (r *row) append(dst []byte) []byte {
	if r.hidden || !r.bare && !r.object.edited {
		return append(dst, r.raw...)
	}
	dst = append(dst, r.raw[:r.at.Start]...)
	if r.bare {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, r.object.raw...)
	}
	return append(dst, r.raw[r.at.End:]...)
}

// hide reduces the row to the name of its object: its other cells must not reach a client that does
// not see the object.
func (r *row) hide() {
	name := quoted(string(r.object.Name()))
	r.object.reduceToIdentity()
	object := string(r.object.raw)
	if r.bare {
		object = "null"
	}
	text := `{"cells":[` + name + `],"object":` + object + `}`
	r.raw, r.hidden = []byte(text), true
}

// rewriteRows applies a Rewriter to each row of a Table. visible reports whether a row is left, or
// there was none.
func rewriteRows(o *Object, rewrite Rewriter, bare bool) (visible bool, err error) {
	at, ok := scan.FindMember(o.raw, tableRows)
	if !ok || o.raw[at.Start] != '[' {
		return true, nil
	}
	out := []byte{'['}
	count := 0
	r := row{bare: bare}
	for element := range (Value{JSON, at.Of(o.raw)}).elements {
		count++
		if err := r.parse(element.raw); err != nil {
			return false, err
		}
		seen, err := rewrite(&r.object)
		if err != nil {
			return false, err
		}
		if !seen {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = r.append(out)
	}
	visible = len(out) > 1 || count == 0
	return visible, o.replace(at, append(out, ']'))
}

// replace replaces a part of a JSON object by text.
func (o *Object) replace(at scan.Span, text []byte) error {
	if string(at.Of(o.raw)) == string(text) {
		return nil
	}
	out := append(o.scratch.free(), o.raw[:at.Start]...)
	out = append(append(out, text...), o.raw[at.End:]...)
	o.edit(out, true)
	return nil
}

// tableEvents is the state of a watch of Tables. Only the first event of such a watch has the
// columns. If the client does not receive that event, they are added to the next one that it
// receives.
type tableEvents struct {
	columns []byte
	row     row
}

// subject returns the object that an event of a Table is about.
func (t *tableEvents) subject(o *Object) (*Object, error) {
	at, ok := scan.FindMember(o.raw, tableRows)
	if !ok {
		return nil, errRow
	}
	count := 0
	for element := range (Value{JSON, at.Of(o.raw)}).elements {
		if count++; count > 1 {
			return nil, errors.New("watchcodec: an event with several rows")
		}
		if err := t.row.parse(element.raw); err != nil {
			return nil, err
		}
	}
	if count == 0 {
		return nil, errRow
	}
	return &t.row.object, nil
}

// finish notes the columns of an event that is not sent, and adds them to the next event that is.
func (t *tableEvents) finish(o *Object, send bool) error {
	at, ok := scan.FindMember(o.raw, tableColumns)
	has := ok && o.raw[at.Start] == '['
	if !send {
		if has {
			t.columns = append([]byte(nil), at.Of(o.raw)...)
		}
		return nil
	}
	if ok && !has && t.columns != nil {
		if err := o.replace(at, t.columns); err != nil {
			return err
		}
	}
	t.columns = nil
	return nil
}

// setRow replaces the row of the event by the rewritten one.
func (t *tableEvents) setRow(o *Object) error {
	at, _ := scan.FindMember(o.raw, tableRows)
	out := t.row.append([]byte{'['})
	return o.replace(at, append(out, ']'))
}
