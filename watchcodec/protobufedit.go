package watchcodec

import "fmt"

// protobuf appends the edited message p to dst.
func (e *Edit) protobuf(dst, p []byte, path Path) (_ []byte, err error) {
	from, found := 0, false // p[from:] is not copied yet
	for i := 0; i < len(p); {
		f, err := nextField(p, i)
		if err != nil {
			return dst, err
		}
		if e.kind == sets && !found && e.before(path, f, p) {
			found = true
			dst = append(dst, p[from:i]...)
			dst = e.missing(dst, path)
			from = i
		}
		i = f.whole.end
		if f.number != path[0].Number || isMap(path) && !hasKey(f.value.of(p), path[1].Name) {
			continue
		}
		last := len(path) == 1 || isMap(path) && len(path) == 2
		if last && e.kind == keeps && e.keep(Value{Protobuf, f.value.of(p)}) {
			continue
		}
		dst = append(dst, p[from:f.whole.start]...)
		from = f.whole.end
		switch {
		case !last && isMap(path):
			return dst, fmt.Errorf("watchcodec: a path that continues after the key %q", path[1].Name)
		case !last:
			dst, err = appendNested(dst, f.number, len(f.value.of(p)), func(b []byte) ([]byte, error) { return e.protobuf(b, f.value.of(p), path[1:]) })
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
func (e *Edit) before(path Path, f protoField, p []byte) bool {
	if f.number != path[0].Number || !isMap(path) {
		return f.number > path[0].Number
	}
	key, _ := Value{Protobuf, f.value.of(p)}.pair()
	return string(key) > path[1].Name
}

// missing appends the value that is set where there was none.
func (e *Edit) missing(dst []byte, path Path) []byte {
	content := []byte(e.wire)
	for i := len(path) - 1; i > 0; i-- {
		if path[i].Number == 0 {
			entry := appendBytesField(nil, 1, []byte(path[i].Name))
			content = appendBytesField(entry, 2, content)
			continue
		}
		content = appendBytesField(nil, path[i].Number, content)
	}
	return appendBytesField(dst, path[0].Number, content)
}
