package main

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fieldError is an error in a field of the file.
type fieldError struct {
	line int
	path string // the field's name behind those that it is in, with dots; "" for none
	err  error
}

func (e *fieldError) Error() string {
	if e.path == "" {
		return fmt.Sprintf("%d: %v", e.line, e.err)
	}
	return fmt.Sprintf("%d: %s: %v", e.line, e.path, e.err)
}

func (e *fieldError) Unwrap() error { return e.err }

// inField adds the name of a field, at n, to an error of what is in it.
func inField(name string, n *yaml.Node, err error) error {
	var inner *fieldError
	if !errors.As(err, &inner) {
		inner = &fieldError{line: n.Line, err: plain(err)}
	}
	path := strings.TrimSuffix(name+"."+inner.path, ".")
	return &fieldError{inner.line, path, inner.err}
}

// plain removes the parser's preface and line from an error, which has its own.
func plain(err error) error {
	var t *yaml.TypeError
	if !errors.As(err, &t) || len(t.Errors) == 0 {
		return err
	}
	_, text, _ := strings.Cut(t.Errors[0], ": ")
	return errors.New(text)
}

// decodeFields decodes a mapping into a struct, and returns the lines of the fields that it has. Unlike yaml.Node.Decode it
// refuses unknown names, and its errors are fieldErrors.
func decodeFields(n *yaml.Node, into any) (lines map[string]int, err error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return nil, &fieldError{line: n.Line, err: errors.New("a mapping is wanted")}
	}
	lines = map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		field, err := fieldOf(into, name.Value)
		if err == nil && lines[name.Value] > 0 {
			err = fmt.Errorf("this is the second one, after that of line %d", lines[name.Value])
		}
		if err == nil {
			err = value.Decode(field)
		}
		if err != nil {
			return nil, inField(name.Value, value, err)
		}
		lines[name.Value] = name.Line
	}
	return lines, nil
}

// fieldOf returns a pointer to the field with the name.
func fieldOf(into any, name string) (any, error) {
	v := reflect.ValueOf(into).Elem()
	similar := ""
	for f, field := range v.Fields() {
		switch tag := f.Tag.Get("yaml"); {
		case tag != "" && tag == name:
			return field.Addr().Interface(), nil
		case tag != "" && strings.EqualFold(tag, name):
			similar = ", it is " + tag
		}
	}
	return nil, errors.New("there is no such field" + similar)
}
