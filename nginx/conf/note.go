package conf

import "fmt"

// Class is how culvert treats a directive.
type Class int

const (
	// Refused: the configuration does not load, because ignoring the directive
	// would change what it means.
	Refused Class = iota
	// Implemented: culvert does what nginx does.
	Implemented
	// NoOp: it can be left out without a client or an upstream noticing.
	NoOp
	// Passed: it is accepted and not followed, which may be missed. What is served is right
	// without it.
	Passed
)

// String returns "refused", "implemented", "no-op" or "passed".
func (c Class) String() string {
	switch c {
	case Implemented:
		return "implemented"
	case NoOp:
		return "no-op"
	case Passed:
		return "passed"
	}
	return "refused"
}

// Note describes how culvert treats one directive of a configuration.
type Note struct {
	// Directive is the directive's name.
	Directive string
	// Class is how culvert treats it.
	Class Class
	// Reason is why, in a few words; "" for implemented ones.
	Reason string
	// File and Line are its place.
	File string
	Line int
}

// String returns the note as a line for a log, with its place.
func (n Note) String() string {
	switch n.Class {
	case Implemented:
		return fmt.Sprintf("%q is implemented in %s:%d", n.Directive, n.File, n.Line)
	case NoOp:
		return fmt.Sprintf("%q is a no-op: %s in %s:%d", n.Directive, n.Reason, n.File, n.Line)
	case Passed:
		return fmt.Sprintf("%q is not followed: %s in %s:%d", n.Directive, n.Reason, n.File, n.Line)
	}
	because := ""
	if n.Reason != "" {
		because = ": " + n.Reason
	}
	return fmt.Sprintf("%q is refused%s in %s:%d", n.Directive, because, n.File, n.Line)
}
