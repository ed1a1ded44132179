// Package conf parses an nginx.conf into checked directives. It describes errors in nginx's own
// words, and decides for each directive whether culvert implements it, can do without it, or
// refuses it.
package conf

import "fmt"

// Error is an error of the configuration.
type Error struct {
	// What is the text of the error.
	What string
	// File and Line are its place; if File is "" it has none.
	File string
	Line int
}

// Error formats e as nginx does, without the level in front.
func (e *Error) Error() string {
	if e.File == "" {
		return e.What
	}
	if e.Line == 0 {
		return e.What + " in " + e.File
	}
	return fmt.Sprintf("%s in %s:%d", e.What, e.File, e.Line)
}
