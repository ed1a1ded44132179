package watchcodec

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// magic is the prefix of every protobuf object of Kubernetes
// (k8s.io/apimachinery/pkg/runtime/serializer/protobuf).
const magic = "k8s\x00"

// Field numbers of Unknown, which follows magic, and of TypeMeta
// (k8s.io/apimachinery/pkg/apis/meta/v1 and pkg/runtime, generated.proto).
const (
	unknownTypeMeta, unknownRaw, unknownEncoding, unknownContentType = 1, 2, 3, 4
	typeMetaAPIVersion, typeMetaKind                                 = 1, 2
	protobufType                                                     = "application/vnd.kubernetes.protobuf"
)

// envelope holds the decoded fields of an Unknown.
type envelope struct {
	kind, apiVersion []byte
	raw              scan.Span // the content of the field raw
	rawField         scan.Span // the field raw with its tag and length
	seen             int
}

// add decodes the field f of p.
func (e *envelope) add(p []byte, f scan.ProtobufField) error {
	if f.Wire != scan.WireBytes || e.seen&(1<<f.Number) != 0 {
		return scan.ErrProtobuf
	}
	content := f.Value.Of(p)
	switch f.Number {
	case unknownTypeMeta:
		e.apiVersion, _ = scan.LastField(content, typeMetaAPIVersion)
		e.kind, _ = scan.LastField(content, typeMetaKind)
	case unknownRaw:
		e.raw, e.rawField = f.Value, f.Whole
	case unknownEncoding:
		if len(content) > 0 {
			return fmt.Errorf("%w: an object encoded as %q", scan.ErrProtobuf, content)
		}
	case unknownContentType:
		if len(content) > 0 && string(content) != protobufType {
			return fmt.Errorf("%w: an object of type %q", scan.ErrProtobuf, content)
		}
	default:
		return scan.ErrProtobuf
	}
	e.seen |= 1 << f.Number
	return nil
}

// open removes the envelope of a protobuf object and parses the object.
func (o *Object) open(p []byte) error {
	if !bytes.HasPrefix(p, []byte(magic)) {
		return fmt.Errorf("%w: no Kubernetes object", scan.ErrProtobuf)
	}
	var e envelope
	for i := len(magic); i < len(p); {
		f, err := scan.NextField(p, i)
		if err == nil {
			err = e.add(p, f)
		}
		if err != nil {
			return err
		}
		i = f.Whole.End
	}
	if e.seen&(1<<unknownRaw) == 0 {
		return fmt.Errorf("%w: an envelope without an object", scan.ErrProtobuf)
	}
	o.kind, o.apiVersion, o.sealed = e.kind, e.apiVersion, e.rawField
	return o.parseProtobuf(e.raw.Of(p))
}

// seal appends envelope, out of which the object was decoded, with the object's current encoding.
func (o *Object) seal(dst, envelope []byte) []byte {
	dst = append(dst, envelope[:o.sealed.Start]...)
	dst = binary.AppendUvarint(append(dst, unknownRaw<<3|scan.WireBytes), uint64(len(o.raw)))
	return append(append(dst, o.raw...), envelope[o.sealed.End:]...)
}

// appendSealed appends an object in a new envelope.
func appendSealed(dst, apiVersion, kind, raw []byte) []byte {
	dst = appendSealedHead(dst, apiVersion, kind, len(raw))
	return append(append(dst, raw...), sealedTail...)
}

// sealedTail is the two empty fields that an API server writes after an object.
const sealedTail = "\x1a\x00\x22\x00"

func appendSealedHead(dst, apiVersion, kind []byte, n int) []byte {
	var few [256]byte
	typeMeta := scan.AppendBytesField(scan.AppendBytesField(few[:0], typeMetaAPIVersion, apiVersion), typeMetaKind, kind)
	dst = scan.AppendBytesField(append(dst, magic...), unknownTypeMeta, typeMeta)
	return binary.AppendUvarint(append(dst, unknownRaw<<3|scan.WireBytes), uint64(n))
}
