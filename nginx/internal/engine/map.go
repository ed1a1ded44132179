package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// defineMap compiles "map string $variable { … }".
func defineMap(c *compiler, d *conf.Directive, name string) func() error {
	m := new(vars.Map)
	c.scope.DeclareMap(name, m)
	return func() error { return fillMap(c, m, d) }
}

// fillMap compiles the body of a map.
func fillMap(c *compiler, m *vars.Map, d *conf.Directive) (err error) {
	if m.Source, err = c.value(d, d.Args[0]); err != nil {
		return err
	}
	m.Exact = map[string]vars.Value{}
	hosts, hostnames := route.NewNames[vars.Value](), false
	hasDefault := false
	for _, row := range d.Block {
		switch {
		case row.Name == "volatile" && len(row.Args) == 0:
			m.Volatile = true
			continue
		case row.Name == "hostnames" && len(row.Args) == 0:
			hostnames = true
			continue
		}
		v, err := c.value(row, row.Args[0])
		if err != nil {
			return err
		}
		text, noCase, isPattern := namePattern(row.Name)
		switch {
		case row.Name == "default":
			if hasDefault {
				return row.Errorf("duplicate default map parameter")
			}
			m.Default, hasDefault = v, true
		case isPattern:
			re, err := pattern(row, text, noCase)
			if err != nil {
				return err
			}
			m.Patterns = append(m.Patterns, vars.Pattern{Regexp: re, Value: v})
		default:
			if err := addKey(m, hosts, hostnames, row, v); err != nil {
				return err
			}
		}
	}
	if hostnames {
		m.Hosts = route.Wildcards[vars.Value]{Names: hosts}
	}
	return nil
}

// addKey adds a plain key. A leading backslash keeps a key from being a keyword or a regular
// expression. With hostnames a key may have a wildcard.
func addKey(m *vars.Map, hosts *route.Names[vars.Value], hostnames bool, row *conf.Directive, v vars.Value) error {
	key := strings.ToLower(strings.TrimPrefix(row.Name, `\`))
	if hostnames && (strings.HasPrefix(key, "*.") || strings.HasPrefix(key, ".") || strings.HasSuffix(key, ".*")) {
		if !route.ValidName(key) {
			return row.Errorf("invalid hostname or wildcard \"%s\"", row.Name)
		}
		if !hosts.Add(key, v) {
			return row.Errorf("conflicting parameter \"%s\"", row.Name)
		}
		return nil
	}
	if _, ok := m.Exact[key]; ok {
		return row.Errorf("conflicting parameter \"%s\"", strings.ToLower(row.Name))
	}
	m.Exact[key] = v
	return nil
}

// mapCaptures declares the groups of the keys.
func mapCaptures(c *compiler, d *conf.Directive) error {
	for _, row := range d.Block {
		if text, _, ok := namePattern(row.Name); ok {
			if err := c.declareGroups(row, text); err != nil {
				return err
			}
		}
	}
	return nil
}
