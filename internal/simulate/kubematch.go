package simulate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carpv1 "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// match compares a watch as the client received it with the expected one.
func (k *kubeContent) match(got []byte, whole bool) error {
	for i := range k.events {
		e := &k.events[i]
		want := k.frame(e)
		frame, rest, ok := k.cutFrame(got)
		if modified := *e; e.either {
			if modified.kind = "MODIFIED"; !bytes.HasPrefix(want, got) && !bytes.Equal(frame, want) {
				want = k.frame(&modified)
			}
		}
		switch {
		case !ok && whole:
			return fmt.Errorf("%d events of %d, and %.60q", i, len(k.events), got)
		case !ok && (e.bare || bytes.HasPrefix(want, got)):
			return nil
		case !ok || !e.bare && !bytes.Equal(frame, want):
			return fmt.Errorf("event %d is %.300q, want %.300q", i, got, want)
		}
		if kind, object := k.open(frame); e.bare && (kind != e.kind || !reflect.DeepEqual(object, k.carp(e))) {
			return fmt.Errorf("event %d is %q, want %s with nothing but %+v", i, frame, e.kind, e)
		}
		got = rest
	}
	if k.failed {
		frame, rest, ok := k.cutFrame(got)
		switch {
		case !ok && whole:
			return fmt.Errorf("%.60q behind event %d, want ERROR", got, len(k.events))
		case !ok && k.beginsError(got):
			return nil
		}
		if kind, _ := k.open(frame); ok && kind == "ERROR" {
			if k.gone && !bytes.Contains(frame, []byte(tooOld.Reason)) {
				return fmt.Errorf("%q behind event %d, want 410", frame, len(k.events))
			}
			got = rest
		}
	}
	if len(got) > 0 {
		return fmt.Errorf("%.300q behind event %d", got, len(k.events))
	}
	return nil
}

// beginsError reports whether a part of an event, after which the client read no more, may be a part of an ERROR event.
func (k *kubeContent) beginsError(part []byte) bool {
	want := []byte(`{"type":"ERROR","object":{`)
	if k.proto {
		part, want = part[min(4, len(part)):], []byte("\x0a\x05ERROR")
	}
	n := min(len(part), len(want))
	return bytes.Equal(part[:n], want[:n])
}

// cutFrame splits the first event off a watch.
func (k *kubeContent) cutFrame(b []byte) (frame, rest []byte, ok bool) {
	if !k.proto {
		n := bytes.IndexByte(b, '\n') + 1
		return b[:n], b[n:], n > 0
	}
	if len(b) < 4 || len(b)-4 < int(binary.BigEndian.Uint32(b)) {
		return nil, nil, false
	}
	n := 4 + int(binary.BigEndian.Uint32(b))
	return b[:n], b[n:], true
}

// open decodes an event. For an ERROR the object is its Status.
func (k *kubeContent) open(frame []byte) (kind string, o *carpv1.Carp) {
	o = new(carpv1.Carp)
	if !k.proto {
		event := struct {
			Type   string
			Object json.RawMessage
		}{}
		err := json.Unmarshal(frame, &event)
		switch {
		case err == nil && k.table && event.Type != "ERROR":
			return event.Type, openTable(event.Object)
		case err == nil:
			err = json.Unmarshal(event.Object, o)
		}
		if err != nil && event.Type != "ERROR" {
			return "", o
		}
		return event.Type, o
	}
	var event metav1.WatchEvent
	var unknown runtime.Unknown
	if len(frame) < 4 || event.Unmarshal(frame[4:]) != nil || len(event.Object.Raw) < 4 || unknown.Unmarshal(event.Object.Raw[4:]) != nil {
		return "", o
	}
	if event.Type != "ERROR" && o.Unmarshal(unknown.Raw) != nil {
		return "", o
	}
	o.TypeMeta = metav1.TypeMeta{Kind: unknown.Kind, APIVersion: unknown.APIVersion}
	return event.Type, o
}
