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
	at, err := member(raw, rowObject)
	if err != nil {
		return err
	}
	if at.End == 0 || raw[at.Start] != '{' {
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

// member returns the value of the member of an object, the zero Span if there is none. A key that is there twice
// or that some decoders take for name is an error, as in an object of Kubernetes.
func member(p []byte, name string) (value scan.Span, err error) {
	c, err := scan.Enter(p, 0, '{', nil)
	if err != nil {
		return value, err
	}
	var seen scan.Keys
	for {
		more, err := c.More()
		if err != nil || !more {
			return value, err
		}
		key, err := c.Key()
		if err != nil {
			return value, err
		}
		known, err := scan.Known(key.Of(p), name)
		if err = firstOf(err, seen.Add(key.Of(p))); err != nil {
			return value, err
		}
		v, err := c.Value()
		if err != nil {
			return value, err
		}
		if known == name {
			value = v
		}
	}
}

// eachRow calls take with each row of a Table, and reports whether the Table has rows. A malformed list of rows is an error:
// its first rows must not be taken for all.
func eachRow(table []byte, take func(raw []byte) error) (rows scan.Span, err error) {
	if rows, err = member(table, tableRows); err != nil || rows.End == 0 || table[rows.Start] != '[' {
		return scan.Span{}, err
	}
	c, err := scan.Enter(table, rows.Start, '[', nil)
	if err != nil {
		return rows, err
	}
	for {
		more, err := c.More()
		if err != nil || !more {
			return rows, err
		}
		raw, err := c.Value()
		if err == nil {
			err = take(raw.Of(table))
		}
		if err != nil {
			return rows, err
		}
	}
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
	out := []byte{'['}
	count := 0
	r := row{bare: bare}
	at, err := eachRow(o.raw, func(raw []byte) error {
		count++
		if err := r.parse(raw); err != nil {
			return err
		}
		seen, err := rewrite(&r.object)
		if err != nil || !seen {
			return err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = r.append(out)
		return nil
	})
	if err != nil || at.End == 0 {
		return err == nil, err
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
	count := 0
	_, err := eachRow(o.raw, func(raw []byte) error {
		if count++; count > 1 {
			return errors.New("watchcodec: an event with several rows")
		}
		return t.row.parse(raw)
	})
	if err == nil && count == 0 {
		err = errRow
	}
	return &t.row.object, err
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
