package command

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/examples/nginx/conf"
	"github.com/culvert-go/culvert/examples/nginx/engine"
)

// printNotes says what the directives of a configuration are to culvert, so that nothing is
// ignored in silence: those that are implemented in a line, each other one with its place.
func printNotes(notes []engine.Note, w io.Writer) {
	implemented := map[string]int{}
	for _, n := range notes {
		at := fmt.Sprintf("in %s:%d", n.File, n.Line)
		switch n.Class {
		case conf.Implemented:
			implemented[n.Directive]++
		case conf.NoOp:
			fmt.Fprintf(w, "nginx: [notice] %q is a no-op: %s %s\n", n.Directive, n.Reason, at)
		case conf.Passed:
			fmt.Fprintf(w, "nginx: [warn] %s\n", warning(n))
		case conf.Refused:
			fmt.Fprintf(w, "nginx: [error] %q is refused%s %s\n", n.Directive, because(n.Reason), at)
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(implemented)) {
		if n := implemented[name]; n > 1 {
			name = fmt.Sprintf("%s (%d)", name, n)
		}
		list = append(list, name)
	}
	if len(list) > 0 {
		fmt.Fprintf(w, "nginx: [notice] implemented: %s\n", strings.Join(list, ", "))
	}
}

// warning says that a directive is not followed.
func warning(n engine.Note) string {
	return fmt.Sprintf("%q is not followed: %s in %s:%d", n.Directive, n.Reason, n.File, n.Line)
}

// warn says on standard error and in the error log what of e's configuration is not followed: a
// start and a reload must not be quieter than -t.
func (s *server) warn(e *engine.Engine) {
	for _, n := range e.Settings().Notes {
		if n.Class != conf.Passed {
			continue
		}
		if e.Settings().ErrorLog != "stderr" {
			fmt.Fprintf(s.stderr, "nginx: [warn] %s\n", warning(n))
		}
		e.Warn(warning(n))
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
