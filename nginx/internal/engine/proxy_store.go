package engine

import (
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/dav"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// storeModule writes the responses of upstreams to files (ngx_http_upstream_store). The directives belong to families.
var storeModule = module{
	active: func(l *level) bool {
		p := *passSlot.of(l)
		return p != nil && p.family.slot.of(l).store.on
	},
	hooks: hooks{around: storeResponse},
}

// storeRule is proxy_store with proxy_store_access.
type storeRule struct {
	on     bool
	path   *vars.Value // nil: the file that the location maps the path to
	access fs.FileMode
}

// stores are the directives about files of responses.
func (f *family) stores() []directive {
	return []directive{
		{name: "force_ranges", compile: setFlag(f.slot, func(s *proxySettings) *bool { return &s.forceRanges })},
		{name: "store", compile: f.store},
		{name: "store_access", compile: f.storeAccess},
	}
}

// store compiles "proxy_store on|off|path".
func (f *family) store(c *compiler, l *level, d *conf.Directive) error {
	s := &f.slot.edit(l).store
	s.on, s.path = d.Args[0] != "off", nil
	switch d.Args[0] {
	case "on", "off":
		return nil
	case "":
		return d.Errorf("empty path")
	}
	path, err := c.value(d, d.Args[0])
	s.path = &path
	return err
}

// storeAccess compiles "proxy_store_access users:permissions ...".
func (f *family) storeAccess(_ *compiler, l *level, d *conf.Directive) (err error) {
	f.slot.edit(l).store.access, err = parseAccess(d)
	return err
}

// file returns the file of x's response; its name is "" if there is none.
func (s *storeRule) file(x *exchange, h http.Header) dav.File {
	f := dav.File{Mode: s.access, CreatePath: true}
	if f.Mode == 0 {
		f.Mode = 0o600
	}
	if s.path == nil {
		f.Name = davName(x, x.URI)
	} else if f.Name = s.path.String(&x.Request); f.Name != "" {
		f.Name = absoluteText(x.engine.prefix, f.Name)
	}
	var err error
	if f.ModTime, err = http.ParseTime(h.Get("Last-Modified")); err != nil {
		f.ModTime = time.Time{}
	}
	return f
}

// storeResponse returns a filter that writes the upstream's response, if it has status 200 and is complete, to its file. Behind
// X-Accel-Redirect another location's upstream may respond, whose own settings count.
func storeResponse(x *exchange) culvert.Filter {
	s, l := x.passSettings().store, x.level
	var file *storedBody
	return filters.OnResponse(filters.ResponseHooks{
		Body: func(_ *http.Request, status int, h http.Header, w io.Writer) io.WriteCloser {
			if status != http.StatusOK || !x.proxy.responded || x.level != l || x.HTTP.Method == http.MethodHead {
				return nil
			}
			f := s.file(x, h)
			if f.Name == "" {
				return nil
			}
			to, err := dav.Create(f)
			if err != nil {
				x.storeFailed(f.Name, err)
				return nil
			}
			file = &storedBody{x: x, w: w, file: to, name: f.Name, left: -1}
			if n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64); err == nil {
				file.left = n
			}
			return file
		},
		End: func(*http.Request, culvert.ResponseStats) {
			if file != nil {
				file.discard()
			}
		},
	})
}

// storeFailed logs that a response is not stored. The client receives it all the same.
func (x *exchange) storeFailed(name string, err error) {
	x.logAt(levelCrit, "the response was not stored as \""+name+"\" ("+conf.Errno(err)+")", "")
}

// storedBody writes a body to the client and to a file, which has its name when the client has the end of the body.
type storedBody struct {
	x    *exchange
	w    io.Writer
	file *dav.Writer // nil: it has ended
	name string
	left int64 // of the body's length; negative: it is not known
}

// Write implements io.Writer. A file that can't be written is given up.
func (b *storedBody) Write(p []byte) (int, error) {
	if b.file != nil {
		if _, err := b.file.Write(p); err != nil {
			b.x.storeFailed(b.name, err)
			b.discard()
		}
	}
	if b.left > 0 {
		if b.left -= int64(len(p)); b.left == 0 {
			b.commit()
		}
	}
	return b.w.Write(p)
}

// Close implements io.Closer: the body is complete.
func (b *storedBody) Close() error {
	b.commit()
	return nil
}

// commit gives the file its name.
func (b *storedBody) commit() {
	if b.file == nil {
		return
	}
	err := b.file.Commit()
	if b.file = nil; err != nil {
		b.x.storeFailed(b.name, err)
	}
}

// discard removes the file if it has no name yet.
func (b *storedBody) discard() {
	if b.file != nil {
		b.file.Discard()
		b.file = nil
	}
}
