package watchcodec

import "slices"

// Field is a step of a path into an object: a name in JSON and a number in protobuf.
type Field struct {
	// Name is the field's name in JSON, or a key of a map.
	Name string
	// Number is the field's number in protobuf (generated.proto of its API group). 0 means a key of
	// a map; see Key.
	Number int
	// OmitEmpty reports whether an empty list or map is omitted in JSON, as the tag of the Go type
	// says.
	OmitEmpty bool
}

// Key returns the step to a key of a map, a label's for instance.
func Key(name string) Field { return Field{Name: name} }

// Path is the path to a value in an object, the same in both formats.
type Path []Field

// The fields of metadata (k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto).
var (
	metadata        = Field{Name: "metadata", Number: 1}
	nameField       = Field{Name: "name", Number: 1}
	namespaceField  = Field{Name: "namespace", Number: 3}
	uidField        = Field{Name: "uid", Number: 5}
	versionField    = Field{Name: "resourceVersion", Number: 6}
	labelsField     = Field{Name: "labels", Number: 11, OmitEmpty: true}
	annotationField = Field{Name: "annotations", Number: 12, OmitEmpty: true}
	managedField    = Field{Name: "managedFields", Number: 17, OmitEmpty: true}
)

// objectMetaNumber returns the number of a field of ObjectMeta by its quoted key in JSON, 0 for
// other keys. In JSON the fields have the same order.
func objectMetaNumber(key []byte) int {
	switch string(key) {
	case `"name"`:
		return 1
	case `"generateName"`:
		return 2
	case `"namespace"`:
		return 3
	case `"selfLink"`:
		return 4
	case `"uid"`:
		return 5
	case `"resourceVersion"`:
		return 6
	case `"generation"`:
		return 7
	case `"creationTimestamp"`:
		return 8
	case `"deletionTimestamp"`:
		return 9
	case `"deletionGracePeriodSeconds"`:
		return 10
	case `"labels"`:
		return 11
	case `"annotations"`:
		return 12
	case `"ownerReferences"`:
		return 13
	case `"finalizers"`:
		return 14
	case `"managedFields"`:
		return 17
	}
	return 0
}

// Metadata returns the path to a field of an object's metadata.
func Metadata(f Field) Path { return Path{metadata, f} }

// Label returns the path to a label.
func Label(key string) Path { return Path{metadata, labelsField, Key(key)} }

// Annotation returns the path to an annotation.
func Annotation(key string) Path { return Path{metadata, annotationField, Key(key)} }

// ManagedFields returns the path to managedFields, the record of which client has set which field.
// It is often half of an object.
func ManagedFields() Path { return slices.Clone(managedFields) }

var managedFields = Path{metadata, managedField}

// ResourceVersion returns the path to an object's resourceVersion.
func ResourceVersion() Path { return Metadata(versionField) }
