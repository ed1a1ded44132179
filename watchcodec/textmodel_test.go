package watchcodec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/watchcodec"
)

// node is a JSON value with the spelling of its keys, texts and numbers, and the order of its
// members.
type node struct {
	kind    byte    // '{', '[' or 's' for the others
	raw     string  // of the others
	keys    []jsKey // of an object
	values  []*node // of an object or an array
	present bool    // it was in the text, and was not set by an edit
}

type jsKey struct{ raw, text string }

// parseNode parses a text. To be simple, it lets encoding/json find the ends of values.
func parseNode(text []byte) (*node, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if !json.Valid(text) {
		return nil, fmt.Errorf("no JSON: %q", text)
	}
	return nextNode(d, text), nil
}

// nextNode returns the next value of d. text is all of it, and well-formed.
func nextNode(d *json.Decoder, text []byte) *node {
	token, raw := nextToken(d, text)
	switch token {
	case json.Delim('{'):
		n := &node{kind: '{', present: true}
		for d.More() {
			key, raw := nextToken(d, text)
			n.keys = append(n.keys, jsKey{raw, key.(string)})
			n.values = append(n.values, nextNode(d, text))
		}
		nextToken(d, text)
		return n
	case json.Delim('['):
		n := &node{kind: '[', present: true}
		for d.More() {
			n.values = append(n.values, nextNode(d, text))
		}
		nextToken(d, text)
		return n
	}
	return &node{kind: 's', raw: raw, present: true}
}

func nextToken(d *json.Decoder, text []byte) (token json.Token, raw string) {
	before := d.InputOffset()
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	return token, strings.TrimLeft(string(text[before:d.InputOffset()]), " \t\r\n,:")
}

// String renders a value without white space.
func (n *node) String() string {
	if n.kind == 's' {
		return n.raw
	}
	var b strings.Builder
	b.WriteByte(n.kind)
	for i, v := range n.values {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.kind == '{' {
			b.WriteString(n.keys[i].raw + ":")
		}
		b.WriteString(v.String())
	}
	b.WriteByte(n.kind + 2)
	return b.String()
}

// last returns the value of a key of an object, the last one if there are several.
func (n *node) last(key string) *node {
	if n.kind == '{' {
		for i, k := range slices.Backward(n.keys) {
			if k.text == key {
				return n.values[i]
			}
		}
	}
	return nil
}

// sorted reports whether the keys of an object are in the order of their texts.
func (n *node) sorted() bool {
	return slices.IsSortedFunc(n.keys, func(a, b jsKey) int { return strings.Compare(a.text, b.text) })
}

// textEdit is an edit of the reference: set is the value to set, keep the elements to keep; with
// neither it deletes.
type textEdit struct {
	path watchcodec.Path
	set  string
	keep func(raw string) bool
}

var errWay = errors.New("something on the way of a path that is neither an object nor a list")

// object edits an object as the documentation of Edit says, and reports whether it is empty then.
func (e *textEdit) object(n *node, path watchcodec.Path) (empty bool, err error) {
	if n.kind != '{' {
		return false, errWay
	}
	found := false
	for i := 0; i < len(n.keys); i++ {
		if n.keys[i].text != path[0].Name {
			continue
		}
		found = true
		gone, err := e.value(n.values[i], path)
		if err != nil {
			return false, err
		}
		if gone {
			n.keys, n.values = slices.Delete(n.keys, i, i+1), slices.Delete(n.values, i, i+1)
			i--
		}
	}
	if !found && e.set != "" {
		e.insert(n, path)
	}
	return len(n.keys) == 0, nil
}

// insert adds a member: in a map that is sorted at its place, else at the end.
func (e *textEdit) insert(n *node, path watchcodec.Path) {
	at := len(n.keys)
	if path[0].Number == 0 && n.sorted() {
		at, _ = slices.BinarySearchFunc(n.keys, path[0].Name, func(k jsKey, name string) int { return strings.Compare(k.text, name) })
	}
	v := &node{kind: '{'}
	if len(path) == 1 {
		v = e.new(false)
	} else {
		e.insert(v, path[1:])
	}
	key := jsKey{string(must(json.Marshal(path[0].Name))), path[0].Name}
	n.keys, n.values = slices.Insert(n.keys, at, key), slices.Insert(n.values, at, v)
}

// new returns the value to set.
func (e *textEdit) new(present bool) *node {
	n := must(parseNode([]byte(e.set)))
	n.present = present
	return n
}

// value edits the value of the path's first step, and reports whether its key is removed, too.
func (e *textEdit) value(n *node, path watchcodec.Path) (gone bool, err error) {
	switch {
	case len(path) > 1 && n.kind == '{':
		empty, err := e.object(n, path[1:])
		return empty && path[0].OmitEmpty, err
	case len(path) > 1 && n.kind == '[':
		for _, element := range n.values {
			if _, err := e.object(element, path[1:]); err != nil {
				return false, err
			}
		}
		return false, nil
	case len(path) > 1 && n.raw != "null":
		return false, errWay
	case len(path) > 1:
		if e.set != "" {
			*n = node{kind: '{', present: n.present}
			e.insert(n, path[1:])
		}
		return false, nil
	case e.keep != nil && n.kind == '[':
		n.values = slices.DeleteFunc(n.values, func(v *node) bool { return !e.keep(v.String()) })
		return len(n.values) == 0 && path[0].OmitEmpty, nil
	case e.keep != nil:
		return false, nil
	case e.set != "":
		*n = *e.new(n.present)
	}
	return e.set == "", nil
}

// alike returns an error if a text differs from the reference. New members may be anywhere but in
// sorted maps.
func alike(got, want *node) error {
	if got.kind != want.kind || got.raw != want.raw || len(got.values) != len(want.values) {
		return fmt.Errorf("%v, want %v", got, want)
	}
	if got.kind != '{' {
		for i := range got.values {
			if err := alike(got.values[i], want.values[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if want.sorted() && !got.sorted() {
		return fmt.Errorf("%v is not sorted", got)
	}
	matched := 0 // members of want that were there before
	for i, key := range got.keys {
		at := slices.Index(want.keys, key)
		if at < 0 || want.values[at].present {
			for matched < len(want.keys) && !want.values[matched].present {
				matched++
			}
			if matched == len(want.keys) || want.keys[matched] != key {
				return fmt.Errorf("the member %s of %v, want %v", key.raw, got, want)
			}
			at = matched
			matched++
		}
		if err := alike(got.values[i], want.values[at]); err != nil {
			return err
		}
	}
	return nil
}
