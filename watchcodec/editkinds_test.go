package watchcodec_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carpv1 "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/culvert-go/culvert/internal/choices"
	"github.com/culvert-go/culvert/watchcodec"
)

// The fields of a Carp, beside those of edit_fuzz_test.go (generated.proto of its group).
var (
	toSpec       = watchcodec.Field{Name: "spec", Number: 2}
	toStatus     = watchcodec.Field{Name: "status", Number: 3}
	toSelector   = watchcodec.Field{Name: "nodeSelector", Number: 7, OmitEmpty: true}
	toDeadline   = watchcodec.Field{Name: "activeDeadlineSeconds", Number: 5}
	toNode       = watchcodec.Field{Name: "nodeName", Number: 10}
	toConditions = watchcodec.Field{Name: "conditions", Number: 2, OmitEmpty: true}
	toMessage    = watchcodec.Field{Name: "message", Number: 6}
	toInfos      = watchcodec.Field{Name: "infos", Number: 8, OmitEmpty: true}
	toInfoC      = watchcodec.Field{Name: "c", Number: 4}
	toController = watchcodec.Field{Name: "controller", Number: 6}
	toDeletion   = watchcodec.Field{Name: "deletionTimestamp", Number: 9}
	toGrace      = watchcodec.Field{Name: "deletionGracePeriodSeconds", Number: 10}
	toUID        = watchcodec.Field{Name: "uid", Number: 5}
	toNamespace  = watchcodec.Field{Name: "namespace", Number: 3}
)

// edit chooses an edit, and changes the reference as the edit must change the object.
func (h *editHistory) edit() watchcodec.Edit {
	kinds := []func(*editHistory) (string, watchcodec.Edit){
		(*editHistory).nothing, (*editHistory).setEntry, (*editHistory).deleteEntry, (*editHistory).deleteList, (*editHistory).deleteMap,
		(*editHistory).setMetadata, (*editHistory).deleteMetadata, (*editHistory).keepFinalizers, (*editHistory).keepOwners, (*editHistory).setOwners,
		(*editHistory).setSpec, (*editHistory).deleteSpec, (*editHistory).setConditions, (*editHistory).keepConditions, (*editHistory).setInfos,
		(*editHistory).deleteInfos, (*editHistory).replaceStatus, (*editHistory).replaceConditions, (*editHistory).setNumber,
	}
	name, e := choices.Pick(h.c, kinds...)(h)
	h.log = append(h.log, name)
	return e
}

// inJSON notes, if so is true, that members are missing in JSON, or are not where an encoder has
// them.
func (h *editHistory) inJSON(so bool) { h.exact = h.exact && !(so && h.format == watchcodec.JSON) }

// inProtobuf notes the same for protobuf.
func (h *editHistory) inProtobuf(so bool) {
	h.exact = h.exact && !(so && h.format == watchcodec.Protobuf)
}

func (h *editHistory) nothing() (string, watchcodec.Edit) {
	return "delete an absent annotation", watchcodec.Delete(watchcodec.Annotation("absent")...)
}

// entries chooses a map.
func (h *editHistory) entries() (m *map[string]string, path []watchcodec.Field) {
	switch h.c.Int(3) {
	case 0:
		return &h.want.Labels, watchcodec.Label("")[:2]
	case 1:
		return &h.want.Annotations, watchcodec.Annotation("")[:2]
	}
	h.inJSON(h.want.Spec.NodeSelector == nil) // then it is last
	return &h.want.Spec.NodeSelector, []watchcodec.Field{toSpec, toSelector}
}

func (h *editHistory) setEntry() (string, watchcodec.Edit) {
	m, path := h.entries()
	key, value := choices.Pick(h.c, oddKeys...), text(h.c)
	if *m = maps.Clone(*m); *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
	return fmt.Sprintf("set %s[%q] to %q", path[1].Name, key, value), watchcodec.Set(value, append(slices.Clone(path), watchcodec.Key(key))...)
}

func (h *editHistory) deleteEntry() (string, watchcodec.Edit) {
	m, path := h.entries()
	key := choices.Pick(h.c, oddKeys...)
	if delete(*m, key); len(*m) == 0 {
		*m = nil
	}
	return fmt.Sprintf("delete %s[%q]", path[1].Name, key), watchcodec.Delete(append(slices.Clone(path), watchcodec.Key(key))...)
}

func (h *editHistory) deleteMap() (string, watchcodec.Edit) {
	m, path := h.entries()
	*m = nil
	return "delete " + path[1].Name, watchcodec.Delete(path...)
}

func (h *editHistory) deleteList() (string, watchcodec.Edit) {
	w := h.want
	switch h.c.Int(5) {
	case 0:
		w.ManagedFields = nil
		return "delete managedFields", watchcodec.Delete(watchcodec.ManagedFields()...)
	case 1:
		w.OwnerReferences = nil
		return "delete ownerReferences", watchcodec.Delete(toMetadata, toOwners)
	case 2:
		w.Finalizers = nil
		return "delete finalizers", watchcodec.Delete(toMetadata, toFinalizers)
	case 3:
		w.Status.Infos = nil
		return "delete infos", watchcodec.Delete(toStatus, toInfos)
	}
	w.Status.Conditions = nil
	return "delete conditions", watchcodec.Delete(toStatus, toConditions)
}

func (h *editHistory) setMetadata() (string, watchcodec.Edit) {
	value := text(h.c)
	h.inJSON(value == "") // an encoder leaves it out
	switch h.c.Int(4) {
	case 0:
		h.want.ResourceVersion = value
		return "set resourceVersion to " + value, watchcodec.Set(value, watchcodec.ResourceVersion()...)
	case 1:
		h.want.UID = types.UID(value)
		return "set uid to " + value, watchcodec.Set(value, toMetadata, toUID)
	case 2:
		h.want.Namespace = value
		return "set namespace to " + value, watchcodec.Set(value, toMetadata, toNamespace)
	}
	h.want.Name = value
	return "set name to " + value, watchcodec.Set(value, toMetadata, toName)
}

func (h *editHistory) deleteMetadata() (string, watchcodec.Edit) {
	switch h.c.Int(4) {
	case 0:
		h.want.DeletionTimestamp = nil
		return "delete deletionTimestamp", watchcodec.Delete(toMetadata, toDeletion)
	case 1:
		h.want.DeletionGracePeriodSeconds = nil
		return "delete deletionGracePeriodSeconds", watchcodec.Delete(toMetadata, toGrace)
	case 2:
		h.inProtobuf(true) // an encoder writes an empty one
		h.want.Namespace = ""
		return "delete namespace", watchcodec.Delete(toMetadata, toNamespace)
	}
	h.inJSON(true) // an encoder writes an empty object
	h.inProtobuf(true)
	h.want.ObjectMeta = metav1.ObjectMeta{}
	return "delete metadata", watchcodec.Delete(toMetadata)
}

// keeps returns a function that keeps some of the texts.
func (h *editHistory) keeps() func(string) bool {
	most := h.c.Int(6)
	return func(text string) bool { return len(text)%6 >= most }
}

func textAt(v watchcodec.Value, path ...watchcodec.Field) string {
	v, _ = v.Get(path...)
	text, _ := v.Text()
	return string(text)
}

func (h *editHistory) keepFinalizers() (string, watchcodec.Edit) {
	keep := h.keeps()
	h.want.Finalizers = kept(h.want.Finalizers, keep)
	return "keep finalizers", watchcodec.Keep(func(v watchcodec.Value) bool { return keep(textAt(v)) }, toMetadata, toFinalizers)
}

// kept returns the elements that must be kept, nil for none.
func kept[T any](list []T, keep func(T) bool) (left []T) {
	for _, element := range list {
		if keep(element) {
			left = append(left, element)
		}
	}
	return left
}

func (h *editHistory) keepOwners() (string, watchcodec.Edit) {
	keep := h.keeps()
	h.want.OwnerReferences = kept(h.want.OwnerReferences, func(r metav1.OwnerReference) bool { return keep(r.Name) })
	return "keep ownerReferences", watchcodec.Keep(func(v watchcodec.Value) bool { return keep(textAt(v, toOwnerName)) }, toMetadata, toOwners)
}

// setOwners edits the elements of a list.
func (h *editHistory) setOwners() (string, watchcodec.Edit) {
	list := slices.Clone(h.want.OwnerReferences)
	h.want.OwnerReferences = list
	if len(list) == 0 || h.c.Bool(2) {
		for i := range list {
			list[i].Controller = nil
		}
		return "delete controller of ownerReferences", watchcodec.Delete(toMetadata, toOwners, toController)
	}
	value := text(h.c)
	for i := range list {
		list[i].Kind = value
	}
	return "set kind of ownerReferences to " + value, watchcodec.Set(value, toMetadata, toOwners, toOwnerKind)
}

func (h *editHistory) setSpec() (string, watchcodec.Edit) {
	value := text(h.c)
	h.inJSON(value == "" || h.want.Spec.NodeName == "")
	h.want.Spec.NodeName = value
	return "set nodeName to " + value, watchcodec.Set(value, toSpec, toNode)
}

func (h *editHistory) deleteSpec() (string, watchcodec.Edit) {
	if h.c.Bool(2) {
		h.want.Spec.ActiveDeadlineSeconds = nil
		return "delete activeDeadlineSeconds", watchcodec.Delete(toSpec, toDeadline)
	}
	h.inJSON(true)
	h.inProtobuf(true)
	h.want.Spec = carpv1.CarpSpec{}
	return "delete spec", watchcodec.Delete(toSpec)
}

func (h *editHistory) setConditions() (string, watchcodec.Edit) {
	list := slices.Clone(h.want.Status.Conditions)
	if h.want.Status.Conditions = list; len(list) == 0 {
		return h.nothing()
	}
	value := text(h.c)
	for i := range list {
		h.inJSON(value == "") // a new one is last, which is its place
		list[i].Message = value
	}
	return "set message of conditions to " + value, watchcodec.Set(value, toStatus, toConditions, toMessage)
}

func (h *editHistory) keepConditions() (string, watchcodec.Edit) {
	keep := h.keeps()
	h.want.Status.Conditions = kept(h.want.Status.Conditions, func(c carpv1.CarpCondition) bool { return keep(c.Message) })
	return "keep conditions", watchcodec.Keep(func(v watchcodec.Value) bool { return keep(textAt(v, toMessage)) }, toStatus, toConditions)
}

func (h *editHistory) setInfos() (string, watchcodec.Edit) {
	list := slices.Clone(h.want.Status.Infos)
	if h.want.Status.Infos = list; len(list) == 0 {
		return h.nothing()
	}
	value := text(h.c)
	for i := range list {
		h.inJSON(list[i].C == nil)
		list[i].C = &value
	}
	return "set c of infos to " + value, watchcodec.Set(value, toStatus, toInfos, toInfoC)
}

func (h *editHistory) deleteInfos() (string, watchcodec.Edit) {
	list := slices.Clone(h.want.Status.Infos)
	for i := range list {
		list[i].C = nil
	}
	h.want.Status.Infos = list
	return "delete c of infos", watchcodec.Delete(toStatus, toInfos, toInfoC)
}

func (h *editHistory) replaceStatus() (string, watchcodec.Edit) {
	h.inJSON(true) // it may have been deleted before
	h.want.Status = newStatus(h.c)
	return "replace status", watchcodec.SetRaw(string(must(json.Marshal(h.want.Status))), string(must(h.want.Status.Marshal())), toStatus)
}

func (h *editHistory) replaceConditions() (string, watchcodec.Edit) {
	h.inJSON(len(h.want.Status.Conditions) == 0)
	one := newCondition(h.c)
	h.want.Status.Conditions = []carpv1.CarpCondition{one}
	return "replace conditions", watchcodec.SetRaw("["+string(must(json.Marshal(one)))+"]", string(must(one.Marshal())), toStatus, toConditions)
}

// setNumber is for JSON: in protobuf a number is not a field of bytes, and can't be set.
func (h *editHistory) setNumber() (string, watchcodec.Edit) {
	if h.format == watchcodec.Protobuf {
		return h.nothing()
	}
	n := choices.Pick(h.c, int64(7), 0, -1, 1<<60)
	h.inJSON(h.want.Spec.ActiveDeadlineSeconds == nil)
	h.want.Spec.ActiveDeadlineSeconds = &n
	return fmt.Sprint("set activeDeadlineSeconds to ", n), watchcodec.SetRaw(fmt.Sprint(n), "", toSpec, toDeadline)
}
