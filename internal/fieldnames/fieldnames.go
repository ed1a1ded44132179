// Package fieldnames holds what a http.Header does not: how the names of a header section's fields are spelt, and their
// order.
package fieldnames

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"
)

// List has the names of the fields of a header section as they are spelt, one for each line, in order. A http.Header has
// neither the spelling nor the order. It carries no fields: what is written is always what the http.Header has, so that
// nothing that was removed from it is sent.
type List []string

// Lines returns the lines of h: at first those that n names, then the others. A field that has more lines than n names is
// continued behind the last of them, with its spelling. A name that h has no line for is passed over, but for those of the
// fields placed, which are canonical keys: the pair of such a key with "" stands for what the caller writes there. The others
// are in the order of their keys.
func (n List) Lines(h http.Header, placed ...string) iter.Seq2[string, string] {
	return n.LinesAround("", h, placed...)
}

// LinesAround is Lines with a place for one more field, which h does not have: own is its canonical key. Without a name its
// place is among the others, in the order of their keys. "" is none.
func (n List) LinesAround(own string, h http.Header, placed ...string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		var room [few]field
		var foundRoom [2 * few]int
		t, found := newTable(room[:0], own, h, placed), foundRoom[:0]
		for _, name := range n {
			i := t.find(name)
			if found = append(found, i); i >= 0 {
				t.fields[i].named++
			}
		}
		for i, name := range n {
			if at := found[i]; at >= 0 && !t.fields[at].yieldNext(name, yield) {
				return
			}
		}
		t.yieldUnnamed(yield)
	}
}

// Lower returns the names of h's fields as HTTP/2 and HTTP/3 spell them, one for each field, in the order of the names.
func Lower(h http.Header) List {
	n := make(List, 0, len(h))
	for key := range h {
		n = append(n, strings.ToLower(key))
	}
	slices.Sort(n)
	return n
}

// Has reports whether a name is that of the field with this canonical key.
func (n List) Has(key string) bool {
	for _, name := range n {
		if len(name) == len(key) && strings.EqualFold(name, key) {
			return true
		}
	}
	return false
}

// Key is the key of a request's *List in its context, of a server that keeps it.
type Key struct{}

// Of returns the list that the server has kept in the context of a request; nil if it has kept none.
func Of(ctx context.Context) List {
	if n, _ := ctx.Value(Key{}).(*List); n != nil {
		return *n
	}
	return nil
}

// Upgrade is what is known of the fields' names in the handshake of an upgrade. It is in the context of the outbound request.
type Upgrade struct {
	Request  List // as they are sent to the target; nil means canonical names
	Received Format
}

type upgradeKey struct{}

// WithUpgrade returns a context of an outbound request with which package wsupgrade sends names by u, and fills u.Received.
func WithUpgrade(ctx context.Context, u *Upgrade) context.Context {
	return context.WithValue(ctx, upgradeKey{}, u)
}

// UpgradeOf returns the Upgrade of ctx, nil if it has none.
func UpgradeOf(ctx context.Context) *Upgrade {
	u, _ := ctx.Value(upgradeKey{}).(*Upgrade)
	return u
}

// Format is how a server writes the header section of a final response over HTTP/1.
type Format struct {
	// Names are those of the fields. Content-Length, Transfer-Encoding, Connection, Date and Content-Type among them are the
	// places of the server's own; those that are not among them are the first, but for Date, which stands among the others
	// without a name. They are the names of trailers as well. nil means the server's own order.
	Names List
	// Status is the code of the status line, a blank and the reason, which may be empty. "", and that of another code than the
	// response's, means the reason of http.StatusText.
	Status string
	// HTTP11 has the status line say HTTP/1.1 to clients of HTTP/1.0, too. It is the highest version that the server speaks
	// then (RFC 9110 section 6.2); the framing is the client's.
	HTTP11 bool
	// Explicit has each response say in Connection whether the connection is kept, as HTTP/1.0 needs it, and no Keep-Alive if
	// it is not.
	Explicit bool
	// Unmeasured has no Content-Length sent that the handler has not declared, though the server knows it.
	Unmeasured bool
}
