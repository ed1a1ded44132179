package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// tryFilesModule looks for files (ngx_http_try_files_module.c).
var tryFilesModule = module{
	directives: []directive{
		{name: "try_files", compile: tryFiles},
	},
	active: func(l *level) bool { return *tryFilesSlot.of(l) != nil },
	hooks:  hooks{precontent: serveTryFiles},
}

var tryFilesSlot = newLocalSlot[*tryRule]()

// tryRule is a try_files.
type tryRule struct {
	files []tryFile
	last  vars.Value // a path or a named location
	code  int        // of "=code", instead of last
}

// tryFile is a file, or a directory if dir is set.
type tryFile struct {
	uri vars.Value
	dir bool
}

// tryFiles compiles "try_files file ... uri" and "try_files file ... =code".
func tryFiles(c *compiler, l *level, d *conf.Directive) error {
	rule, n := &tryRule{}, len(d.Args)-1
	for _, arg := range d.Args[:n] {
		name, dir := strings.CutSuffix(arg, "/")
		v, err := c.value(d, name)
		if err != nil {
			return err
		}
		rule.files = append(rule.files, tryFile{v, dir})
	}
	if text, ok := strings.CutPrefix(d.Args[n], "="); ok {
		code, ok := conf.Number(text)
		if !ok || code > 999 {
			return d.Errorf("invalid code \"=%s\"", text)
		}
		rule.code = code
	}
	var err error
	if rule.last, err = c.value(d, d.Args[n]); err != nil {
		return err
	}
	*tryFilesSlot.edit(l) = rule
	return nil
}

// candidate returns the path that the location continues with if its file exists. An alias stands for the location's name, which
// only a text with variables may begin with, and in a regular expression for nothing of the path.
func (t *tryRule) candidate(x *exchange, f tryFile) (uri, file string) {
	uri = f.uri.String(&x.Request)
	root := rootSlot.of(x.level)
	switch {
	case !root.alias:
		return uri, filename(x, uri)
	case root.whole:
		return uri, documentRoot(x) + uri
	}
	if _, constant := f.uri.Literal(); !constant {
		uri = strings.TrimPrefix(uri, root.prefix)
	}
	return root.prefix + uri, documentRoot(x) + uri
}

// serveTryFiles looks for the files. done is false if one exists: the location's content continues
// with it.
func serveTryFiles(x *exchange, w http.ResponseWriter) (status int, done bool) {
	t := *tryFilesSlot.of(x.level)
	root := rootSlot.of(x.level)
	for _, f := range t.files {
		uri, file := t.candidate(x, f)
		if status := x.failedPattern(); status != 0 {
			return status, true
		}
		if !links(x).Exists(file, f.dir) {
			continue
		}
		if root.alias && root.whole {
			if f.dir {
				return 0, false
			}
			x.behindAlias = true
		}
		x.URI = uri
		return 0, false
	}
	if t.code != 0 {
		return t.code, true
	}
	last := t.last.String(&x.Request)
	if status := x.failedPattern(); status != 0 {
		return status, true
	}
	if strings.HasPrefix(last, "@") {
		return x.redirectNamed(w, last), true
	}
	uri, args, _ := strings.Cut(last, "?")
	return x.redirect(w, uri, args), true
}
