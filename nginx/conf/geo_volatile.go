package conf

import (
	"errors"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// restoreVolatile puts the "volatile" of a geo back, which crossplane does not know there and leaves out, and reports whether err is about
// one. It does not where two blocks of a line may have had it.
func restoreVolatile(parsed crossplane.Directives, err error) bool {
	var pe *crossplane.ParseError
	if !errors.As(err, &pe) || pe.BlockCtx != "geo" || pe.Line == nil || strings.TrimRight(pe.Statement, "; ") != "volatile" {
		return false
	}
	geo := geoBefore(parsed, *pe.Line)
	if geo == nil {
		return false
	}
	geo.Block = append(crossplane.Directives{{Directive: "volatile", Line: *pe.Line}}, geo.Block...)
	return true
}

// geoBefore returns the last geo that begins up to a line, nil if there is none, or if there are two on its line.
func geoBefore(list crossplane.Directives, line int) (last *crossplane.Directive) {
	for _, d := range list {
		found := d
		if d.Directive != "geo" {
			found = geoBefore(d.Block, line)
		}
		switch {
		case found == nil || found.Line > line:
		case last != nil && last.Line == found.Line:
			return nil
		default:
			last = found
		}
	}
	return last
}
