package conf

import "fmt"

// Directive is one directive of a checked configuration. Includes are replaced by their
// directives.
type Directive struct {
	// Name is the directive's name; in the body of map and types it is the
	// first word of the line.
	Name string
	// Args are its arguments, with nginx's escapes converted.
	Args []string
	// Block holds the directives in its braces; nil if it has none.
	Block []*Directive
	// File and Line are its place.
	File string
	Line int
}

// Errorf returns an *Error that points to d.
func (d *Directive) Errorf(format string, args ...any) error {
	return &Error{What: fmt.Sprintf(format, args...), File: d.File, Line: d.Line}
}

// Invalid returns nginx's error for a value that a directive can't have.
func (d *Directive) Invalid() error {
	return d.Errorf("\"%s\" directive invalid value", d.Name)
}

// File is one file of a configuration as it was read.
type File struct {
	// Name is the path that it was read by.
	Name string
	// Data is its content.
	Data []byte
}

// Tree is a checked configuration.
type Tree struct {
	// Main holds the directives of the main context.
	Main []*Directive
	// Files are all files in the order in which they were read, each once.
	Files []File
	// Notes describe in order how culvert treats each directive.
	Notes []Note
}
