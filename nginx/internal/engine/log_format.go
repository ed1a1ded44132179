package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// combined is nginx's predefined format.
const combined = `$remote_addr - $remote_user [$time_local] "$request" ` +
	`$status $body_bytes_sent "$http_referer" "$http_user_agent"`

// logFormat is a compiled log_format.
type logFormat = vars.Line

// declareFormats compiles all log formats.
func (c *compiler) declareFormats(list []*conf.Directive) error {
	line, err := c.scope.CompileLine(combined, vars.EscapeDefault)
	if err != nil {
		return err
	}
	c.formats = map[string]logFormat{"combined": line}
	for _, d := range list {
		if d.Name != "log_format" {
			continue
		}
		if err := c.format(d); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) format(d *conf.Directive) error {
	name, parts := d.Args[0], d.Args[1:]
	if _, ok := c.formats[name]; ok {
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
	c.formats[name] = line
	return nil
}
