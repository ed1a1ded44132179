package engine

import (
	"path/filepath"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// rootModule maps paths to files.
var rootModule = module{
	directives: []directive{
		{name: "alias", compile: alias},
		{name: "root", compile: root},
	},
	variables: map[string]variable{
		"document_root":    known(documentRoot),
		"realpath_root":    nonEmpty(realpathRoot),
		"request_filename": known(func(x *exchange) string { return filename(x, x.URI) }),
	},
}

var rootSlot = newSlot(rootRule{value: vars.Constant("html")})

// rootRule is root or alias.
type rootRule struct {
	value  vars.Value
	alias  bool
	prefix string // the location's name that alias stands for
	whole  bool   // alias in a regular expression: it is the whole path
	given  string // the value as a path, if it has no variables, and has ".." segments
}

// root compiles "root path".
func root(c *compiler, l *level, d *conf.Directive) error { return setRoot(c, l, d, false) }

// alias compiles "alias path".
func alias(c *compiler, l *level, d *conf.Directive) error { return setRoot(c, l, d, true) }

func setRoot(c *compiler, l *level, d *conf.Directive, isAlias bool) error {
	if !l.first("root") {
		other := "root"
		if rootSlot.of(l).alias {
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
	rule := rootRule{value: v, alias: isAlias, prefix: l.name, whole: l.isPattern()}
	if text, ok := v.Literal(); ok && strings.Contains(text, "..") {
		rule.given = absoluteText(c.engine.prefix, text)
	}
	*rootSlot.edit(l) = rule
	return nil
}

// documentRoot returns $document_root, an absolute path.
func documentRoot(x *exchange) string {
	return absoluteText(x.engine.prefix, rootSlot.of(x.level).value.String(&x.Request))
}

// failedRoot is failedPattern for what the files of x's location depend on.
func (x *exchange) failedRoot() int {
	if !x.engine.backtracks || *passSlot.of(x.level) != nil {
		return 0
	}
	_, _ = documentRoot(x), links(x)
	return x.failedPattern()
}

// realpathRoot is $document_root without symbolic links; it has no value if it leads nowhere.
func realpathRoot(x *exchange) string {
	real, err := filepath.EvalSymlinks(documentRoot(x))
	if err != nil {
		return ""
	}
	return real
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
func filename(x *exchange, uri string) string {
	base, rule := documentRoot(x), rootSlot.of(x.level)
	switch {
	case !rule.alias:
		return base + uri
	case rule.whole:
		if x.behindAlias {
			return base + uri
		}
		return base
	case strings.HasPrefix(uri, rule.prefix):
		return base + uri[len(rule.prefix):]
	}
	return base + uri
}
