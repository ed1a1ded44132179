package watchcodec_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carpv1 "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/culvert-go/culvert/internal/choices"
	"github.com/culvert-go/culvert/watchcodec"
)

// seenEvent is an event that a client should receive: its type and its object. For a hidden object
// the client receives only what identifies it. exact reports whether its encoding is known to the
// byte.
type seenEvent struct {
	kind          string
	object        *carpv1.Carp
	hidden, exact bool
}

// watchHistory is a watch of a few objects, and the state of a client that sees some of them.
type watchHistory struct {
	*streamHistory
	exists map[string]*carpv1.Carp
	has    map[string]bool // the client has it
	sent   []seenEvent
}

// next changes one of the objects.
func (h *watchHistory) next(version int) (kind string, o *carpv1.Carp) {
	if h.c.Bool(8) {
		o := &carpv1.Carp{TypeMeta: metav1.TypeMeta{Kind: carpKind, APIVersion: carpVersion}}
		o.ResourceVersion = fmt.Sprint(version)
		return "BOOKMARK", o
	}
	name := fmt.Sprint("n", h.c.Int(3))
	o = h.object(name, version, h.c.Bool(2))
	switch before := h.exists[name]; {
	case before == nil:
		kind = "ADDED"
	case h.c.Bool(3):
		kind = "DELETED"
	default:
		kind = "MODIFIED"
	}
	if h.exists[name] = o; kind == "DELETED" {
		delete(h.exists, name)
	}
	return kind, o
}

// wants returns the event that the client should receive, nil for none. It follows the
// documentation of Visible.
func (h *watchHistory) wants(kind string, o *carpv1.Carp) *seenEvent {
	if kind == "BOOKMARK" {
		return &seenEvent{kind, o, false, true}
	}
	exact := !h.loose[o.Name+"/"+o.ResourceVersion]
	seen, has := o.Labels[shown] == "true", h.has[o.Name]
	h.has[o.Name] = seen && kind != "DELETED"
	switch {
	case seen && has:
		return &seenEvent{kind, h.became(o), false, exact}
	case seen && kind != "DELETED":
		return &seenEvent{"ADDED", h.became(o), false, exact}
	case has:
		left := &carpv1.Carp{TypeMeta: o.TypeMeta}
		left.Name, left.Namespace, left.UID, left.ResourceVersion = o.Name, o.Namespace, o.UID, o.ResourceVersion
		return &seenEvent{"DELETED", left, true, false}
	}
	return nil
}

// frame encodes an event as an API server does.
func (h *watchHistory) frame(kind string, object []byte) []byte {
	if h.format == watchcodec.JSON {
		return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", kind, bytes.TrimSuffix(object, []byte("\n")))
	}
	event := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: object}}
	raw := must(event.Marshal())
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
}

// cutFrame decodes the first event of a watch, as Kubernetes' own framers and decoders do.
func (h *watchHistory) cutFrame(watch []byte) (e metav1.WatchEvent, frame, rest []byte, err error) {
	if h.format == watchcodec.JSON {
		d := json.NewDecoder(bytes.NewReader(watch))
		err = d.Decode(&e)
		end := int(d.InputOffset())
		if err == nil && (end == len(watch) || watch[end] != '\n') {
			err = fmt.Errorf("no newline after %s", watch[:end])
		}
		if err != nil {
			return e, nil, nil, err
		}
		return e, watch[:end+1], watch[end+1:], nil
	}
	n := 4
	if len(watch) >= n {
		n += int(binary.BigEndian.Uint32(watch))
	}
	if len(watch) < n {
		return e, nil, nil, fmt.Errorf("%d bytes of a frame of %d", len(watch), n)
	}
	return e, watch[:n], watch[n:], e.Unmarshal(watch[4:n])
}

// TestWatchHistories: for random events, received in pieces of any size, a client receives the
// events of visible objects, encoded as Kubernetes' codecs would encode them. A watch that is cut
// off ends with an ERROR event.
func TestWatchHistories(t *testing.T) {
	histories.Run(t, func(_ *testing.T, c *choices.Choices) error {
		h := &watchHistory{streamHistory: newStreamHistory(c, watchcodec.JSON, watchcodec.Protobuf), exists: map[string]*carpv1.Carp{}, has: map[string]bool{}}
		var body []byte
		var kinds []string
		var objects []*carpv1.Carp
		var ends []int
		for version := range c.Int(12) {
			kind, o := h.next(version + 1)
			body = append(body, h.frame(kind, encodeAs(h.format, o))...)
			kinds, objects, ends = append(kinds, kind), append(objects, o), append(ends, len(body))
		}
		cut := len(body)
		if len(body) > 0 && c.Bool(6) {
			cut = c.Int(len(body))
		}
		w, whole := h.serve(carpsPath+"?watch=1", h.accept(), body[:cut])
		if !whole || w.Code != 200 {
			return fmt.Errorf("%q after %d", w.Body, w.Code)
		}
		broken := cut > 0
		for i, kind := range kinds {
			complete := ends[i] <= cut || h.format == watchcodec.JSON && ends[i] == cut+1 // except for the newline
			if ends[i] == cut || complete && ends[i] > cut {
				broken = false
			}
			if complete {
				if e := h.wants(kind, objects[i]); e != nil {
					h.sent = append(h.sent, *e)
				}
			}
		}
		if err := h.compare(w.Body.Bytes(), broken); err != nil {
			return fmt.Errorf("%q of %v: %w", body[:cut], kinds, err)
		}
		return h.err
	})
}

// compare compares the events that a client has received with those that it should receive.
func (h *watchHistory) compare(watch []byte, broken bool) error {
	for i, want := range h.sent {
		e, frame, rest, err := h.cutFrame(watch)
		if err != nil {
			return fmt.Errorf("event %d of %d: %q: %w", i, len(h.sent), watch, err)
		}
		if e.Type != want.kind {
			return fmt.Errorf("event %d is %s of %q, want %s of %s", i, e.Type, e.Object.Raw, want.kind, want.object.Name)
		}
		if want.exact && !bytes.Equal(frame, h.frame(want.kind, encodeAs(h.format, want.object))) {
			return fmt.Errorf("event %d\n%q\nwant\n%q", i, frame, h.frame(want.kind, encodeAs(h.format, want.object)))
		}
		object := e.Object.Raw
		if h.format == watchcodec.JSON {
			object = append(bytes.Clone(object), '\n')
		}
		if err := h.same(object, want.exact, want.object, new(carpv1.Carp), func() {}); err != nil {
			return fmt.Errorf("event %d, %s: %w", i, want.kind, err)
		}
		watch = rest
	}
	if broken {
		e, _, rest, err := h.cutFrame(watch)
		if err != nil || e.Type != "ERROR" {
			return fmt.Errorf("%q in place of an ERROR event: %w", watch, err)
		}
		watch = rest
	}
	if len(watch) > 0 {
		return fmt.Errorf("%q after the last event", watch)
	}
	return nil
}
