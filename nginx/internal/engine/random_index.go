package engine

import (
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// randomIndexModule serves a random file as the index of a directory
// (ngx_http_random_index_module.c).
var randomIndexModule = module{
	directives: []directive{
		{name: "random_index", compile: setFlag(randomIndexSlot, func(on *bool) *bool { return on })},
	},
	active: func(l *level) bool { return *randomIndexSlot.of(l) },
	hooks:  hooks{content: serveRandomIndex},
}

var randomIndexSlot = newSlot(false)

func serveRandomIndex(x *exchange, w http.ResponseWriter) (status int, done bool) {
	if !strings.HasSuffix(x.URI, "/") || !readsFile(x.HTTP.Method) {
		return 0, false
	}
	name := filename(x, x.URI)
	dir, status := links(x).OpenDir(name)
	if status != 0 {
		logFailed(x, "opendir", name, status)
		return status, true
	}
	defer dir.Close()
	chosen, err := randomFile(dir)
	if err != nil {
		x.logAt(levelCrit, "readdir() \""+name+"\" failed ("+err.Error()+")", "")
		return http.StatusInternalServerError, true
	}
	if chosen == "" {
		return 0, false
	}
	return x.redirect(w, x.URI+chosen, x.Args), true
}

// randomFile returns the name of a regular file of a directory, or of a link to one, that does not
// begin with a dot; "" if there is none. It keeps one name at a time.
func randomFile(dir *os.File) (chosen string, err error) {
	for n := 0; ; {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") || !isFile(dir.Name(), e) {
				continue
			}
			if n++; rand.IntN(n) == 0 {
				chosen = e.Name()
			}
		}
		if len(entries) == 0 {
			if err == io.EOF {
				err = nil
			}
			return chosen, err
		}
	}
}

// isFile reports whether an entry is a regular file, or leads to one.
func isFile(dir string, e os.DirEntry) bool {
	if e.Type()&os.ModeSymlink == 0 {
		return e.Type().IsRegular()
	}
	info, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && info.Mode().IsRegular()
}
