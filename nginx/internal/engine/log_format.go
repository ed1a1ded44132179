package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// combined is nginx's predefined format.
const combinedName, combined = "combined", `$remote_addr - $remote_user [$time_local] "$request" ` +
	`$status $body_bytes_sent "$http_referer" "$http_user_agent"`

// logFormat is a compiled log_format.
type logFormat = vars.Line

// declareFormat compiles "log_format name [escape=default|json|none] string ...".
func declareFormat(c *compiler, http *level, d *conf.Directive) error {
	s := logSlot.edit(http)
	name, parts := d.Args[0], d.Args[1:]
	if _, ok := s.formats[name]; ok || name == combinedName && !c.stream {
		return d.Errorf("duplicate \"log_format\" name \"%s\"", name)
	}
	escape := vars.EscapeDefault
	if value, ok := strings.CutPrefix(parts[0], "escape="); ok {
		switch value {
		case "default":
		case "json":
			escape = vars.EscapeJSON
		case "none":
			escape = vars.EscapeNone
		default:
			return d.Errorf("unknown log format escaping \"%s\"", value)
		}
		parts = parts[1:]
	}
	line, err := c.scope.CompileLine(strings.Join(parts, ""), escape)
	if err != nil {
		return d.Errorf("%s", err)
	}
	if s.formats == nil {
		s.formats = map[string]logFormat{}
	}
	s.formats[name] = line
	return nil
}
