package watchcodec

import (
	"io"
	"math"
)

// ListParser takes a list as it is received, written to it in the response of a handler for
// instance, and calls a function with each item. It accepts some objects that are not lists, a
// Status for instance: the caller has to check Kind.
//
// A ListParser must not be used by several goroutines at the same time.
type ListParser struct {
	list io.WriteCloser
	info listInfo
}

// listInfo is the content of a list beside its items.
type listInfo struct {
	format           Format
	apiVersion, kind string
	meta             []byte
}

// NewListParser returns a reader that calls take with each item, which is valid until take returns.
// An item has at most maxObject bytes; 0 means DefaultMaxFrame.
func NewListParser(f Format, maxObject int, take func(*Object) error) *ListParser {
	if maxObject == 0 {
		maxObject = DefaultMaxFrame
	}
	return newListParser(f, &FilterOptions{MaxObject: maxObject}, take)
}

// newListParser is NewListParser with MaxObject and Tables of o.
func newListParser(f Format, o *FilterOptions, take func(*Object) error) *ListParser {
	r := &ListParser{info: listInfo{format: f}}
	x := &exchange{o: &FilterOptions{MaxObject: o.MaxObject, MaxList: math.MaxInt, Tables: o.Tables}, format: f, rewrite: func(o *Object) (bool, error) { return false, take(o) }}
	if f == Protobuf {
		l := newProtobufListWriter(io.Discard, x)
		l.info = &r.info
		r.list = l
	} else {
		l := newJSONListWriter(io.Discard, x)
		l.info = &r.info
		r.list = l
	}
	return r
}

// Write takes the next bytes of the list. After an error, every call returns that error.
func (r *ListParser) Write(p []byte) (int, error) { return r.list.Write(p) }

// Close is called at the end of the stream. It returns an error if the list is incomplete.
func (r *ListParser) Close() error { return r.list.Close() }

// Kind returns the apiVersion and the kind of the list, "PodList" for instance. They are known at
// the end of the list.
func (r *ListParser) Kind() (apiVersion, kind string) { return r.info.apiVersion, r.info.kind }

// ResourceVersion returns the resourceVersion of the list, which is known at the end of the list.
func (r *ListParser) ResourceVersion() string {
	return r.text(Field{Name: "resourceVersion", Number: listVersion})
}

// Continue returns the token that requests the rest of the list, "" if there is none.
func (r *ListParser) Continue() string { return r.text(Field{Name: "continue", Number: 3}) }

func (r *ListParser) text(f Field) string {
	v, _ := Value{r.info.format, r.info.meta}.Get(f)
	text, _ := v.Text()
	return string(text)
}
