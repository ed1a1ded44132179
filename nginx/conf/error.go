// Package conf reads an nginx.conf into checked directives. It says what is
// wrong with a configuration in nginx's own words, and it knows of each
// directive whether culvert does it, can do without it, or refuses it.
package conf

import "fmt"

// Error is an error of the configuration.
type Error struct {
	// What is the text of the error.
	What string
	// File and Line say where; File "" is nowhere in particular.
	File string
	Line int
}

// Error prints e as nginx does, without the level in front.
func (e *Error) Error() string {
	if e.File == "" {
		return e.What
	}
	if e.Line == 0 {
		return e.What + " in " + e.File
	}
	return fmt.Sprintf("%s in %s:%d", e.What, e.File, e.Line)
}
