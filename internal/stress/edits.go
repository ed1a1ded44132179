package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"

	"github.com/culvert-go/culvert/watchcodec"
)

// edits is about sequences of edits of one object: those that change something beside those that
// change nothing.
var edits = scenario{
	name:    "edits",
	promise: "an edited object is what decoding it, changing it and encoding it gives",
	clients: 4, few: 1200,
	start: func(r *run) func(*client) {
		return func(c *client) {
			recorded := pick(c.Rand, recordedObjects())
			input := bytes.Clone(recorded.raw)
			c.exchanges.Add(1)
			if wrong := c.editObject(recorded, input); wrong != "" {
				c.broke("an edited object is what decoding it, changing it and encoding it gives", "%s", wrong)
			}
			if !bytes.Equal(input, recorded.raw) {
				c.broke("an edit leaves alone what it reads", "%s", recorded.name)
			}
		}
	},
}

// change is an edit, in words that both the codec and the model understand.
type change struct {
	verb  verb
	path  watchcodec.Path
	text  string // of a set
	mask  uint64 // of a keep: bit i%64 says that element i is kept
	inert bool   // it is meant to change nothing
}

type verb int

const (
	remove verb = iota
	set
	keep
)

func (ch change) String() string {
	names := ""
	for _, f := range ch.path {
		names += "/" + f.Name
	}
	return fmt.Sprintf("%s %s %q", [...]string{"delete", "set", "keep"}[ch.verb], names, ch.text)
}

func (ch change) edit() watchcodec.Edit {
	switch ch.verb {
	case set:
		return watchcodec.Set(ch.text, ch.path...)
	case keep:
		kept := ch.keeper()
		return watchcodec.Keep(func(watchcodec.Value) bool { return kept() }, ch.path...)
	}
	return watchcodec.Delete(ch.path...)
}

// keeper returns a function that reports of one element after the other whether it is kept.
func (ch change) keeper() func() bool {
	i := -1
	return func() bool { i++; return ch.mask>>(i%64)&1 == 1 }
}

var (
	metadataField = watchcodec.Field{Name: "metadata", Number: 1}
	owners        = watchcodec.Path{metadataField, {Name: "ownerReferences", Number: 13, OmitEmpty: true}}
	finalizers    = watchcodec.Path{metadataField, {Name: "finalizers", Number: 14, OmitEmpty: true}}
	keys          = []string{"a", "app", "k8s-app", "kubernetes.io/hostname", "m", "topology.kubernetes.io/zone", "zz", "endpointslice.kubernetes.io/managed-by", "quoted \"é\""}
	texts         = []string{"", "x", "a much longer value than the one before it, so that everything behind it moves", "\"\\é\n"}
	inJSON        = []watchcodec.Path{
		{{Name: "spec"}, {Name: "ports"}}, {{Name: "endpoints"}}, {{Name: "subsets"}, {Name: "addresses"}},
		{{Name: "spec"}, {Name: "containers"}}, {{Name: "status"}, {Name: "conditions"}}, {{Name: "rows"}},
		{{Name: "subsets"}, {Name: "notReadyAddresses"}}, {{Name: "status"}, {Name: "images"}},
	}
)

// randomChange returns an edit that suits the format.
func randomChange(rnd *rand.Rand, f watchcodec.Format) change {
	ch := change{text: pick(rnd, texts)}
	switch rnd.IntN(9) {
	case 0, 1:
		ch.verb, ch.path = set, watchcodec.Label(pick(rnd, keys))
	case 2:
		ch.verb, ch.path = set, watchcodec.Annotation(pick(rnd, keys))
	case 3:
		ch.path = watchcodec.Label(pick(rnd, keys))
	case 4:
		ch.path = pick(rnd, []watchcodec.Path{watchcodec.ManagedFields(), watchcodec.Annotation(pick(rnd, keys)), owners, finalizers})
	case 5:
		ch.verb, ch.path = set, watchcodec.ResourceVersion()
	case 6:
		ch.verb, ch.path = set, watchcodec.Metadata(watchcodec.Field{Name: "generateName", Number: 2})
	case 7:
		ch.verb, ch.path, ch.mask = keep, pick(rnd, []watchcodec.Path{watchcodec.ManagedFields(), owners, finalizers}), rnd.Uint64()
	case 8:
		ch.path, ch.inert = watchcodec.Label("not there"), true
	}
	if f == watchcodec.JSON && rnd.IntN(3) == 0 {
		ch.verb, ch.path, ch.mask = keep, pick(rnd, inJSON), rnd.Uint64()|rnd.Uint64()
		if rnd.IntN(3) == 0 {
			ch.mask, ch.inert = ^uint64(0), true
		}
	}
	return ch
}

// editObject edits the object in raw a few times and returns what went wrong, "" for nothing.
func (c *client) editObject(from object, raw []byte) string {
	want, err := newModel(from.format, raw)
	if err != nil {
		return fmt.Sprintf("%s: the recording: %v", from.name, err)
	}
	var o watchcodec.Object
	if err := o.Parse(from.format, from.apiVersion, from.kind, raw); err != nil {
		return fmt.Sprintf("%s: %v", from.name, err)
	}
	var done []change
	for range 1 + c.IntN(4) {
		var some []watchcodec.Edit
		for range 1 + c.IntN(4) {
			ch := randomChange(c.Rand, from.format)
			if ch.inert {
				c.fault()
			}
			some, done = append(some, ch.edit()), append(done, ch)
			want.change(ch)
		}
		if err := o.Edit(some...); err != nil {
			return fmt.Sprintf("%s: %v: %v", from.name, done, err)
		}
		if c.odds(2) {
			_ = o.Labels() // has the object parsed again
		}
	}
	if err := want.compare(o.AppendRaw(nil)); err != nil {
		return fmt.Sprintf("%s: %v: %v", from.name, done, err)
	}
	return ""
}

// differ says where got differs from want, briefly.
func differ(what string, got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s is %.300v, not %.300v", what, got, want)
}
