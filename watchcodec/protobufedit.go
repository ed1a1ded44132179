package watchcodec

import (
	"fmt"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// protobuf appends the edited message p to dst.
func (e *Edit) protobuf(dst, p []byte, path Path) (_ []byte, err error) {
	from, found := 0, false // p[from:] is not copied yet
	for i := 0; i < len(p); {
		f, err := scan.NextField(p, i)
		if err != nil {
			return dst, err
		}
		if e.kind == sets && !found && e.before(path, f, p) {
			found = true
			dst = append(dst, p[from:i]...)
			dst = e.missing(dst, path)
			from = i
		}
		i = f.Whole.End
		if f.Number != path[0].Number || isMap(path) && !hasKey(f.Value.Of(p), path[1].Name) {
			continue
		}
		last := len(path) == 1 || isMap(path) && len(path) == 2
		if last && e.kind == keeps && e.keep(Value{Protobuf, f.Value.Of(p)}) {
			continue
		}
		dst = append(dst, p[from:f.Whole.Start]...)
		from = f.Whole.End
		switch {
		case !last && isMap(path):
			return dst, fmt.Errorf("watchcodec: a path that continues after the key %q", path[1].Name)
		case !last:
			dst, err = scan.AppendNested(dst, f.Number, len(f.Value.Of(p)), func(b []byte) ([]byte, error) { return e.protobuf(b, f.Value.Of(p), path[1:]) })
			if err != nil {
				return dst, err
			}
		case e.kind == sets && !found:
			dst = e.missing(dst, path)
		}
		found = true
	}
	dst = append(dst, p[from:]...)
	if e.kind == sets && !found {
		dst = e.missing(dst, path)
	}
	return dst, nil
}

// isMap reports whether the path continues with a key of a map.
func isMap(path Path) bool { return len(path) > 1 && path[1].Number == 0 }

func hasKey(entry []byte, key string) bool {
	k, _ := Value{Protobuf, entry}.pair()
	return string(k) == key
}

// before reports whether the missing value that is set belongs before f: fields are in the order of
// their numbers, and a map's entries in that of their keys.
func (e *Edit) before(path Path, f scan.ProtobufField, p []byte) bool {
	if f.Number != path[0].Number || !isMap(path) {
		return f.Number > path[0].Number
	}
	key, _ := Value{Protobuf, f.Value.Of(p)}.pair()
	return string(key) > path[1].Name
}

// missing appends the value that is set where there was none.
func (e *Edit) missing(dst []byte, path Path) []byte {
	content := []byte(e.wire)
	for i := len(path) - 1; i > 0; i-- {
		if path[i].Number == 0 {
			entry := scan.AppendBytesField(nil, 1, []byte(path[i].Name))
			content = scan.AppendBytesField(entry, 2, content)
			continue
		}
		content = scan.AppendBytesField(nil, path[i].Number, content)
	}
	return scan.AppendBytesField(dst, path[0].Number, content)
}
