package nginx

import (
	"fmt"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// warn lists the directives of e's configuration that are not followed, on standard error and in the error log: a start
// and a reload must not be quieter than nginx -t.
func (s *Server) warn(e *engine.Engine) {
	for _, n := range e.Settings().Notes {
		if n.Class != conf.Passed {
			continue
		}
		if e.Settings().ErrorLog != "stderr" {
			fmt.Fprintf(s.options.Stderr, "nginx: [warn] %s\n", n)
		}
		e.Warn(n.String())
	}
}
