package simulate

import (
	"bytes"
	"encoding/binary"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carpv1 "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	protobufserializer "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// kubeContent is a list, a watch or an object, as the target sends it or as filters have left it.
type kubeContent struct {
	verb   KubeVerb
	proto  bool
	table  bool
	stream uint32
	events []kubeEvent // of a list or an object: ADDED
	cut    bool        // a part of another event follows
	failed bool        // an ERROR event of the gateway's own follows
	before []kubeEvent // the objects that existed before the events of a resumed watch
	more   string      // the continue token for the rest of a list

	resumed bool         // it is a watch that continues
	expired *kubeContent // what the client may see instead: a watch that ends with a 410
	gone    bool         // the ERROR event of the gateway's is a 410
}

// kubeEvent is an event of a watch, or an object.
type kubeEvent struct {
	kind    string
	name    int
	version int
	shown   bool   // by a label
	node    string // spec.nodeName
	note    string // an annotation
	managed bool   // managedFields are there
	bare    bool   // only the identity of the object is left
	columns bool   // the columns of a Table are sent with it
	either  bool   // it may be MODIFIED instead: the gateway can't know that its client does not have the object
}

// content returns what a plan's response has, with the contents of a stream.
func (k *KubeContent) content(stream uint32) *kubeContent {
	content := &kubeContent{verb: k.Verb, proto: k.Proto, table: k.Table, stream: stream, before: k.begin(), resumed: k.Resumed}
	exists, last := map[int]bool{}, map[int]bool{}
	for _, e := range content.before {
		exists[e.name], last[e.name] = true, e.shown
	}
	for i, code := range k.Events {
		e := kubeEvent{kind: "ADDED", name: code % 3, version: i + 10, shown: code/3%2 == 1, node: "somewhere", note: "kept", managed: code%5 == 0}
		switch {
		case k.Verb != KubeWatch:
			e.name = i
		case code >= 60:
			e = kubeEvent{kind: "BOOKMARK", version: i + 10}
		case exists[e.name] && code/6%4 == 3:
			e.kind = "DELETED"
		case exists[e.name]:
			e.kind = "MODIFIED"
		}
		if k.Resumed && e.kind == "DELETED" {
			e.shown = last[e.name] // a deleted object is as it was
		}
		if e.kind != "BOOKMARK" {
			exists[e.name], last[e.name] = e.kind != "DELETED", e.shown
		}
		content.events = append(content.events, e)
	}
	if k.Gone && k.Verb == KubeWatch {
		content.events = append(content.events, kubeEvent{kind: "ERROR", version: len(k.Events) + 10})
	}
	if k.Verb == KubeObject {
		content.events = append(content.events, kubeEvent{kind: "ADDED", name: 1, version: 10, shown: len(k.Events)%3 > 0, node: "somewhere", note: "kept", managed: true})
		content.events = content.events[len(k.Events):]
	}
	if k.Table && len(content.events) > 0 && content.events[0].kind != "ERROR" {
		content.events[0].columns = true
	}
	return content
}

// until returns the part of the content that n bytes hold.
func (k *kubeContent) until(n int64) *kubeContent {
	if n >= int64(len(k.bytes())) {
		return k
	}
	short := *k
	short.events, short.cut = nil, true
	switch {
	case k.verb == KubeObject, k.verb == KubeList && k.proto:
		return &short
	case k.verb == KubeList:
		short.events = k.items(n)
		return &short
	}
	at := int64(0)
	for i := range k.events {
		end := at + int64(len(k.frame(&k.events[i])))
		if end > n && !(end == n+1 && !k.proto) { // but for the newline
			short.cut = at < n
			return &short
		}
		short.events, at = append(short.events, k.events[i]), end
	}
	short.cut = false
	return &short
}

// items returns the items of a list in JSON that are whole within its first n bytes.
func (k *kubeContent) items(n int64) []kubeEvent {
	part := *k
	for i := range k.events {
		part.events = k.events[:i+1]
		if end := len(bytes.TrimSuffix(part.bytes(), []byte(listEnd))); int64(end) > n {
			return k.events[:i]
		}
	}
	return k.events
}

// listEnd ends a list in JSON, after its items.
const listEnd = "]}\n"

// bytes encodes the content, as an API server does.
func (k *kubeContent) bytes() (b []byte) {
	switch k.verb {
	case KubeList:
		if k.table {
			return k.encodeTable(k.events, true)
		}
		list := &carpv1.CarpList{TypeMeta: metav1.TypeMeta{Kind: "CarpList", APIVersion: carpVersion}, Items: []carpv1.Carp{}}
		list.ResourceVersion, list.Continue = "9", k.more
		for i := range k.events {
			item := k.carp(&k.events[i])
			item.TypeMeta = metav1.TypeMeta{}
			list.Items = append(list.Items, *item)
		}
		return k.encode(list)
	case KubeObject:
		return k.encode(k.carp(&k.events[0]))
	}
	for i := range k.events {
		b = append(b, k.frame(&k.events[i])...)
	}
	return b
}

// frame encodes an event of a watch.
func (k *kubeContent) frame(e *kubeEvent) []byte {
	object := k.encode(k.object(e))
	if k.table && e.kind != "ERROR" {
		object = k.encodeTable([]kubeEvent{*e}, e.columns)
	}
	if !k.proto {
		return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", e.kind, bytes.TrimSuffix(object, []byte("\n")))
	}
	event := metav1.WatchEvent{Type: e.kind, Object: runtime.RawExtension{Raw: object}}
	raw, err := event.Marshal()
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
}

// object returns the object of an event.
func (k *kubeContent) object(e *kubeEvent) runtime.Object {
	if e.kind == "ERROR" {
		return tooOld.DeepCopy()
	}
	return k.carp(e)
}

const shownLabel = "shown"

var carpVersion = carpv1.SchemeGroupVersion.String()

// carp returns the object of an event.
func (k *kubeContent) carp(e *kubeEvent) *carpv1.Carp {
	o := &carpv1.Carp{TypeMeta: metav1.TypeMeta{Kind: "Carp", APIVersion: carpVersion}}
	o.ResourceVersion = fmt.Sprint(e.version)
	if e.kind == "BOOKMARK" {
		return o
	}
	o.Name, o.Namespace, o.UID = fmt.Sprintf("n%d-%010d", e.name, k.stream), "ns", "u"
	if e.bare {
		return o
	}
	o.Labels = map[string]string{shownLabel: fmt.Sprint(e.shown)}
	o.Annotations = map[string]string{"a": "b", "note": e.note, "z": "y"}
	o.Spec.NodeName, o.Spec.Hostname = e.node, "h"
	if e.managed {
		o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Apply"}}
	}
	return o
}

// kubeScheme knows the objects.
var kubeScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := carpv1.AddToScheme(s); err != nil {
		panic(err)
	}
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"}) // of a Status
	return s
}()

// kubeCodecs encode as Kubernetes does: in JSON, and in protobuf.
var kubeCodecs = [2]runtime.Encoder{
	jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, kubeScheme, kubeScheme, jsonserializer.SerializerOptions{}),
	protobufserializer.NewSerializer(kubeScheme, kubeScheme),
}

// encode encodes an object.
func (k *kubeContent) encode(o runtime.Object) []byte {
	var b bytes.Buffer
	codec := kubeCodecs[0]
	if k.proto {
		codec = kubeCodecs[1]
	}
	if err := codec.Encode(o, &b); err != nil {
		panic(err)
	}
	return b.Bytes()
}
