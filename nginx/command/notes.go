package command

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// printNotes reports how culvert treats the directives of a configuration, so that none is
// ignored silently: the implemented ones in one line, each other one with its place.
func printNotes(notes []conf.Note, w io.Writer) {
	levels := map[conf.Class]string{conf.NoOp: "notice", conf.Passed: "warn", conf.Refused: "error"}
	implemented := map[string]int{}
	for _, n := range notes {
		if n.Class == conf.Implemented {
			implemented[n.Directive]++
			continue
		}
		fmt.Fprintf(w, "nginx: [%s] %s\n", levels[n.Class], n)
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
