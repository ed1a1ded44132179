package watchcodec

import (
	"io"
	"math"
)

// ListReader takes a list as it comes, written to it in the answer of a handler for
// instance, and hands over its items.
//
// A ListReader must not be used by several goroutines at once.
type ListReader struct {
	list io.WriteCloser
	head listHead
}

// listHead is what a list tells beside its items.
type listHead struct {
	format           Format
	apiVersion, kind string
	meta             []byte
}

// NewListReader returns a reader that calls take with each item, which is valid until take
// returns. An item has at most maxObject bytes; 0 means DefaultMaxFrame.
func NewListReader(f Format, maxObject int, take func(*Object) error) *ListReader {
	if maxObject == 0 {
		maxObject = DefaultMaxFrame
	}
	return newListReader(f, &FilterOptions{MaxObject: maxObject}, take)
}

// newListReader takes MaxObject and Tables of the options.
func newListReader(f Format, o *FilterOptions, take func(*Object) error) *ListReader {
	r := &ListReader{head: listHead{format: f}}
	a := &answer{o: &FilterOptions{MaxObject: o.MaxObject, MaxList: math.MaxInt, Tables: o.Tables}, format: f, rewrite: func(o *Object) (bool, error) { return false, take(o) }}
	if f == Protobuf {
		l := newProtobufListWriter(io.Discard, a)
		l.told = &r.head
		r.list = l
	} else {
		l := newJSONListWriter(io.Discard, a)
		l.told = &r.head
		r.list = l
	}
	return r
}

// Write takes a piece of the list. An error stays.
func (r *ListReader) Write(p []byte) (int, error) { return r.list.Write(p) }

// Close is called at the end. It fails if the list has not ended.
func (r *ListReader) Close() error { return r.list.Close() }

// Kind returns the kind of the list, "PodList" for instance, and its apiVersion. They are
// known at the end.
func (r *ListReader) Kind() (apiVersion, kind string) { return r.head.apiVersion, r.head.kind }

// ResourceVersion returns that of the list, which is known at the end.
func (r *ListReader) ResourceVersion() string {
	return r.text(Field{Name: "resourceVersion", Number: listVersion})
}

// Continue returns what asks for the rest of the list, "" if this is all.
func (r *ListReader) Continue() string { return r.text(Field{Name: "continue", Number: 3}) }

func (r *ListReader) text(f Field) string {
	v, _ := Value{r.head.format, r.head.meta}.Get(f)
	text, _ := v.Text()
	return string(text)
}
