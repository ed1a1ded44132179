package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// rootRule is root or alias.
type rootRule struct {
	value  vars.Value
	alias  bool
	prefix string // the location's name that alias stands for
	whole  bool   // alias in a regular expression: it is the whole path
}

// root compiles "root path".
func root(c *compiler, l *level, d *conf.Directive) error { return c.setRoot(l, d, false) }

// alias compiles "alias path".
func alias(c *compiler, l *level, d *conf.Directive) error { return c.setRoot(l, d, true) }

func (c *compiler) setRoot(l *level, d *conf.Directive, isAlias bool) error {
	if !l.first("root") {
		other := "root"
		if l.root.alias {
			other = "alias"
		}
		return d.Errorf("\"%s\" directive is duplicate, \"%s\" directive was specified earlier", d.Name, other)
	}
	if isAlias && l.kind == namedLocation {
		return d.Errorf("the \"alias\" directive cannot be used inside the named location")
	}
	v, err := c.value(d, d.Args[0])
	if err != nil {
		return err
	}
	if strings.Contains(d.Args[0], "$document_root") || strings.Contains(d.Args[0], "${document_root}") {
		return d.Errorf("the $document_root variable cannot be used in the \"%s\" directive", d.Name)
	}
	if text, ok := v.Literal(); ok && !isAlias {
		v = vars.Constant(strings.TrimSuffix(text, "/"))
	}
	l.root = rootRule{value: v, alias: isAlias, prefix: l.name, whole: l.isPattern()}
	return nil
}

// DocumentRoot implements vars.Location.
func (x *exchange) DocumentRoot() string { return x.level.documentRoot(x) }

// Filename implements vars.Location.
func (x *exchange) Filename() string { return x.filename(x.URI) }

// documentRoot returns $document_root, an absolute path.
func (l *level) documentRoot(x *exchange) string {
	return absoluteText(x.engine.prefix, l.root.value.String(&x.Request))
}

// absoluteText puts the prefix before a relative path. Unlike filepath.Join it does not clean the
// path: alias needs its last slash, and a ".." must be kept so that it is noticed.
func absoluteText(prefix, name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return strings.TrimSuffix(prefix, "/") + "/" + name
}

// filename returns the file of a path (ngx_http_map_uri_to_path).
func (x *exchange) filename(uri string) string {
	base, rule := x.level.documentRoot(x), x.level.root
	switch {
	case !rule.alias:
		return base + uri
	case rule.whole:
		return base
	case strings.HasPrefix(uri, rule.prefix):
		return base + uri[len(rule.prefix):]
	}
	return base + uri
}

// index compiles "index file ...". Names behind an absolute one are not looked for.
func index(c *compiler, l *level, d *conf.Directive) error {
	if l.first("index") {
		l.index = nil
	}
	for i, name := range d.Args {
		if name == "" {
			return d.Errorf("index \"%s\" in \"index\" directive is invalid", name)
		}
		if strings.HasPrefix(name, "/") && i < len(d.Args)-1 {
			c.warn(d, "only the last index in \"index\" directive should be absolute")
		}
		v, err := c.value(d, name)
		if err != nil {
			return err
		}
		l.index = append(l.index, v)
	}
	return nil
}

// indexFile finds the index of a directory and returns the path to continue with.
func (x *exchange) indexFile(exists func(string) bool) (uri string, found bool) {
	looked := false
	for _, v := range x.level.index {
		name := v.String(&x.Request)
		if strings.HasPrefix(name, "/") {
			return name, true
		}
		if exists(x.filename(x.URI) + name) { // not that of the longer path: an alias may be made of captures
			return x.URI + name, true
		}
		if !looked && static.Search(x.filename(x.URI)) != 0 {
			break // not a readable directory: an absolute index is not used either
		}
		looked = true
	}
	return "", false
}
