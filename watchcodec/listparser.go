package watchcodec

import (
	"bytes"
	"fmt"
	"io"
)

// ListParser parses a list as it is received, written to it in the response of a handler for
// instance, and calls a function with each item. An object that is not a list, a Status for
// instance, is an error.
//
// A ListParser must not be used by several goroutines at the same time.
type ListParser struct {
	format Format
	parser listParser
	take   func(*Object) error
	meta   []byte
}

// NewListParser returns a ListParser that calls take with each item, which is valid until take
// returns. An error of take ends the list. An item has at most maxObject bytes; 0 means
// DefaultMaxFrame.
func NewListParser(f Format, maxObject int, take func(*Object) error) *ListParser {
	if maxObject == 0 {
		maxObject = DefaultMaxFrame
	}
	return newListParser(f, listRules{maxObject: maxObject}, take)
}

func newListParser(f Format, rules listRules, take func(*Object) error) *ListParser {
	l := &ListParser{format: f, take: take}
	if f == Protobuf {
		parser := new(protobufListParser)
		parser.init(l, rules)
		l.parser = parser
	} else {
		parser := new(jsonListParser)
		parser.init(l, rules)
		l.parser = parser
	}
	return l
}

// Write parses the next bytes of the list. After an error, every call returns that error.
func (l *ListParser) Write(p []byte) (int, error) { return l.parser.Write(p) }

// Close is called at the end of the stream. It returns an error if the list is incomplete, and the
// error that Write has returned, if any.
func (l *ListParser) Close() error { return l.parser.Close() }

// Kind returns the apiVersion and the kind of the list, "PodList" for instance. They are known at
// the end of the list.
func (l *ListParser) Kind() (apiVersion, kind string) { return l.parser.typeMeta() }

// ResourceVersion returns the resourceVersion of the list, which is known at the end of the list.
func (l *ListParser) ResourceVersion() string {
	return l.text(Field{Name: "resourceVersion", Number: listVersion})
}

// Continue returns the token that requests the rest of the list, "" if there is none. It is known
// at the end of the list.
func (l *ListParser) Continue() string { return l.text(Field{Name: "continue", Number: 3}) }

func (l *ListParser) text(f Field) string {
	v, _ := Value{l.format, l.meta}.Get(f)
	text, _ := v.Text()
	return string(text)
}

// verbatim implements listParts.
func (l *ListParser) verbatim([]byte) error { return nil }

// metadata implements listParts.
func (l *ListParser) metadata(p []byte) error {
	l.meta = bytes.Clone(p)
	return nil
}

// item implements listParts.
func (l *ListParser) item(_ []byte, o *Object, _ *row) error { return l.take(o) }

// listParser parses a list in one format.
type listParser interface {
	io.WriteCloser
	// typeMeta returns the apiVersion and the kind, as far as they are known.
	typeMeta() (apiVersion, kind string)
}

// listRules are the rules for what is a list.
type listRules struct {
	maxObject int  // bounds an item in bytes, and the other values
	tables    bool // a Table is a list, too
	status    bool // a Status may be in the place of a list
}

// listParts receives the parts of a list in their order. What its methods are called with is valid
// until they return. An error of a method ends the list.
type listParts interface {
	// verbatim is called with what is neither metadata nor item: the text around them in JSON, a
	// Status in protobuf.
	verbatim(p []byte) error
	// metadata is called with the list's metadata.
	metadata(p []byte) error
	// item is called with an item. before is what is between it and the part before it: in JSON
	// white space and a comma, in protobuf the tag and the length. r is the row of a Table that has
	// the object, nil in other lists.
	item(before []byte, o *Object, r *row) error
}

func noList(kind []byte) error { return fmt.Errorf("watchcodec: a %q in the place of a list", kind) }

// listVersion is the field resourceVersion of ListMeta.
const listVersion = 2

// firstOf returns err if it is not nil, else other.
func firstOf(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
