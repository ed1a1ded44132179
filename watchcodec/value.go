package watchcodec

import (
	"encoding/binary"
	"iter"
	"strconv"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// Format is an encoding of objects. The zero value is JSON.
type Format int

const (
	// JSON is application/json.
	JSON Format = iota
	// Protobuf is application/vnd.kubernetes.protobuf.
	Protobuf
)

// Value is a part of an object, in its encoding. It shares the object's memory and is valid as long
// as that.
type Value struct {
	format Format
	raw    []byte
}

// Raw returns the value's encoding: the text in JSON, the content of the field in protobuf.
func (v Value) Raw() []byte { return v.raw }

// Text returns the value as a string. ok is false if a JSON value is not a string.
func (v Value) Text() (text []byte, ok bool) {
	if v.format == Protobuf {
		return v.raw, true
	}
	if len(v.raw) < 2 || v.raw[0] != '"' {
		return nil, false
	}
	text, err := scan.Unquote(v.raw)
	return text, err == nil
}

// Int returns the value as an integer. ok is false if it is not one.
func (v Value) Int() (n int64, ok bool) {
	if v.format == Protobuf {
		u, size := binary.Uvarint(v.raw)
		return int64(u), size > 0
	}
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	return n, err == nil
}

// Bool returns the value as a boolean. ok is false if it is not one.
func (v Value) Bool() (b, ok bool) {
	if v.format == Protobuf {
		n, ok := v.Int()
		return n != 0, ok
	}
	return string(v.raw) == "true", string(v.raw) == "true" || string(v.raw) == "false"
}

// Get returns the value at a path. ok is false if there is none, or if an object on the path is
// malformed. Of repeated fields the last counts, as for decoders; in protobuf that includes the
// elements of a list.
func (v Value) Get(path ...Field) (got Value, ok bool) {
	for i, f := range path {
		if f.Number == 0 && v.format == Protobuf {
			return Value{}, false // v is one entry of the map, not the map
		}
		if v.format == Protobuf && i+1 < len(path) && path[i+1].Number == 0 {
			entry, ok := v.entry(f.Number, path[i+1].Name)
			if !ok || i+2 == len(path) {
				return entry, ok
			}
			return entry.Get(path[i+2:]...)
		}
		if v, ok = v.field(f); !ok {
			return Value{}, false
		}
	}
	return v, true
}

func (v Value) field(f Field) (Value, bool) {
	if v.format == Protobuf {
		content, ok := scan.LastField(v.raw, f.Number)
		return Value{Protobuf, content}, ok
	}
	at, ok := scan.FindMember(v.raw, f.Name)
	if !ok {
		return Value{}, false
	}
	return Value{JSON, at.Of(v.raw)}, true
}

// fields returns the fields of a message with the number, up to the first malformed one.
func (v Value) fields(number int) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for i := 0; i < len(v.raw); {
			f, err := scan.NextField(v.raw, i)
			if err != nil || f.Number == number && !yield(Value{Protobuf, f.Value.Of(v.raw)}) {
				return
			}
			i = f.Whole.End
		}
	}
}

// entry returns the value of a map's key in protobuf, where a map is a list of its entries.
func (v Value) entry(number int, key string) (found Value, ok bool) {
	for i := 0; i < len(v.raw); {
		f, err := scan.NextField(v.raw, i)
		if err != nil {
			break
		}
		if f.Number == number {
			if k, value := (Value{Protobuf, f.Value.Of(v.raw)}).pair(); string(k) == key {
				found, ok = value, true
			}
		}
		i = f.Whole.End
	}
	return found, ok
}

// pair returns the key and the value of an entry of a map.
func (v Value) pair() (key []byte, value Value) {
	value.format = Protobuf
	for i := 0; i < len(v.raw); {
		if end := scan.ShortField(v.raw, i); end > 0 && v.raw[i]>>3 <= 2 {
			if v.raw[i]>>3 == 1 {
				key = v.raw[i+2 : end]
			} else {
				value.raw = v.raw[i+2 : end]
			}
			i = end
			continue
		}
		f, err := scan.NextField(v.raw, i)
		if err != nil {
			break
		}
		switch f.Number {
		case 1:
			key = f.Value.Of(v.raw)
		case 2:
			value.raw = f.Value.Of(v.raw)
		}
		i = f.Whole.End
	}
	return key, value
}

// Elements returns the elements of the list at the path.
func (v Value) Elements(path ...Field) iter.Seq[Value] {
	if v.format == Protobuf && len(path) > 0 {
		parent, ok := v.Get(path[:len(path)-1]...)
		if !ok {
			return func(func(Value) bool) {}
		}
		return parent.fields(path[len(path)-1].Number)
	}
	list, _ := v.Get(path...)
	return list.elements
}

func (v Value) elements(yield func(Value) bool) {
	var w scan.Window
	c, err := scan.Enter(v.raw, 0, '[', &w)
	for more := err == nil; more; {
		if more, err = c.More(); err != nil || !more {
			return
		}
		element, err := c.Value()
		if err != nil || !yield(Value{JSON, element.Of(v.raw)}) {
			return
		}
	}
}
