package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert/watchcodec"
)

// model is an object that is decoded, changed and compared.
type model interface {
	change(change)
	compare(encoded []byte) error
}

func newModel(f watchcodec.Format, raw []byte) (model, error) {
	if f == watchcodec.Protobuf {
		return newProtobufModel(raw)
	}
	return newJSONModel(raw)
}

// jsonModel is an object by encoding/json.
type jsonModel map[string]any

func newJSONModel(raw []byte) (m jsonModel, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return m, d.Decode(&m)
}

func (m jsonModel) change(ch change) { changeJSON(m, ch, ch.path, ch.keeper()) }

// changeJSON changes what path leads to in m.
func changeJSON(m map[string]any, ch change, path watchcodec.Path, kept func() bool) {
	name, value := path[0].Name, m[path[0].Name]
	if len(path) == 1 {
		switch list, isList := value.([]any); {
		case ch.verb == set:
			m[name] = ch.text
		case ch.verb == remove:
			delete(m, name)
		case isList:
			left := make([]any, 0, len(list))
			for _, element := range list {
				if kept() {
					left = append(left, element)
				}
			}
			m[name] = left
			if len(left) == 0 && path[0].OmitEmpty {
				delete(m, name)
			}
		}
		return
	}
	switch inner := value.(type) {
	case nil:
		if ch.verb == set {
			made := map[string]any{}
			m[name] = made
			changeJSON(made, ch, path[1:], kept)
		}
	case map[string]any:
		changeJSON(inner, ch, path[1:], kept)
		if len(inner) == 0 && path[0].OmitEmpty {
			delete(m, name)
		}
	case []any:
		for _, element := range inner {
			changeJSON(element.(map[string]any), ch, path[1:], kept)
		}
	}
}

func (m jsonModel) compare(encoded []byte) error {
	got, err := newJSONModel(encoded)
	if err != nil {
		return fmt.Errorf("%w in %.300s", err, encoded)
	}
	for _, name := range []string{"kind", "apiVersion"} {
		if m[name] == nil {
			delete(got, name) // told by the list that the object came in
		}
	}
	for name := range got {
		if err := differ(name, got[name], m[name]); err != nil {
			return err
		}
	}
	return differ("the object", len(got), len(m))
}

// protobufModel is an object's metadata by Kubernetes' own codec, and what follows it.
type protobufModel struct {
	meta metav1.ObjectMeta
	rest []byte
}

func newProtobufModel(raw []byte) (*protobufModel, error) {
	m := new(protobufModel)
	encoded, rest, err := splitMetadata(raw)
	if err == nil {
		err = m.meta.Unmarshal(encoded)
	}
	m.rest = rest
	return m, err
}

// splitMetadata cuts an object's first field, which is its metadata, off.
func splitMetadata(raw []byte) (encoded, rest []byte, err error) {
	const tag = 1<<3 | 2
	if len(raw) == 0 || raw[0] != tag {
		return nil, raw, nil
	}
	n, size := binary.Uvarint(raw[1:])
	if size <= 0 || n > uint64(len(raw)-1-size) {
		return nil, nil, errors.New("malformed metadata")
	}
	from := 1 + size
	return raw[from : from+int(n)], raw[from+int(n):], nil
}

func (m *protobufModel) change(ch change) {
	meta, field := &m.meta, ch.path[1].Name
	switch field {
	case "labels":
		changeMap(&meta.Labels, ch)
	case "annotations":
		changeMap(&meta.Annotations, ch)
	case "resourceVersion":
		meta.ResourceVersion = ch.text
	case "generateName":
		meta.GenerateName = ch.text
	case "managedFields":
		changeList(&meta.ManagedFields, ch)
	case "ownerReferences":
		changeList(&meta.OwnerReferences, ch)
	case "finalizers":
		changeList(&meta.Finalizers, ch)
	default:
		panic("no model of " + field)
	}
}

func changeMap(m *map[string]string, ch change) {
	key := ch.path[2].Name
	switch {
	case ch.verb == remove:
		delete(*m, key)
	case *m == nil:
		*m = map[string]string{key: ch.text}
	default:
		*m = maps.Clone(*m)
		(*m)[key] = ch.text
	}
}

func changeList[T any](list *[]T, ch change) {
	kept := ch.keeper()
	var left []T
	for _, element := range *list {
		if ch.verb == keep && kept() {
			left = append(left, element)
		}
	}
	*list = left
}

func (m *protobufModel) compare(encoded []byte) error {
	got, err := newProtobufModel(encoded)
	if err != nil {
		return err
	}
	if !bytes.Equal(got.rest, m.rest) {
		return fmt.Errorf("%d bytes behind the metadata, not the %d of before", len(got.rest), len(m.rest))
	}
	want, err := m.meta.Marshal()
	if err != nil {
		return err
	}
	again, err := got.meta.Marshal()
	if err != nil || bytes.Equal(again, want) {
		return err
	}
	return fmt.Errorf("metadata is %.300v, not %.300v", got.meta.String(), m.meta.String())
}
