package engine

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/dav"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

// davModule changes files (ngx_http_dav_module.c).
var davModule = module{
	directives: []directive{
		{name: "create_full_put_path", compile: setFlag(davSlot, func(s *davSettings) *bool { return &s.createPath })},
		{name: "dav_access", compile: davAccess},
		{name: "dav_methods", compile: davMethods},
		{name: "min_delete_depth", compile: setNumber(davSlot, func(s *davSettings) *int { return &s.minDepth })},
	},
	active: func(l *level) bool { return len(davSlot.of(l).methods) > 0 },
	hooks:  hooks{content: serveDAV},
}

var davSlot = newSlot(davSettings{access: 0o600})

type davSettings struct {
	methods    []string
	createPath bool
	access     fs.FileMode // of new files
	minDepth   int         // of what may be deleted
}

// davMethods compiles "dav_methods off|method ...".
func davMethods(_ *compiler, l *level, d *conf.Directive) error {
	s := davSlot.edit(l)
	s.methods = nil
	for _, name := range d.Args {
		switch method := strings.ToUpper(name); method {
		case "PUT", "DELETE", "MKCOL", "COPY", "MOVE":
			s.methods = append(s.methods, method)
		case "OFF":
		default:
			return d.Errorf("invalid value \"%s\"", name)
		}
	}
	return nil
}

// davAccess compiles "dav_access users:permissions ...".
func davAccess(_ *compiler, l *level, d *conf.Directive) (err error) {
	davSlot.edit(l).access, err = parseAccess(d)
	return err
}

// parseAccess parses "users:permissions ..." (ngx_conf_set_access_slot).
func parseAccess(d *conf.Directive) (fs.FileMode, error) {
	shifts := map[string]int{"user": 6, "group": 3, "all": 0}
	rights := map[string]fs.FileMode{"r": 4, "rw": 6}
	access, user := fs.FileMode(0), fs.FileMode(0o600)
	for _, arg := range d.Args {
		who, what, _ := strings.Cut(arg, ":")
		shift, known := shifts[who]
		if !known || rights[what] == 0 {
			return 0, d.Errorf("invalid value \"%s\"", arg)
		}
		if who == "user" {
			user = 0
		}
		access |= rights[what] << shift
	}
	return access | user, nil
}

// serveDAV serves the methods that change files.
func serveDAV(x *exchange, w http.ResponseWriter) (status int, done bool) {
	if !slices.Contains(davSlot.of(x.level).methods, x.HTTP.Method) {
		return 0, false
	}
	if name := davName(x, x.URI); dav.Check(name) != nil {
		return x.davError(dav.Check(name), "open", name, http.StatusNotFound), true
	}
	switch x.HTTP.Method {
	case "PUT":
		return x.put(w), true
	case "DELETE":
		status = x.withoutBody("DELETE with body is unsupported", x.delete)
	case "MKCOL":
		status = x.withoutBody("MKCOL with body is unsupported", func() int { return x.makeCollection(w) })
	case "COPY", "MOVE":
		status = x.withoutBody("COPY and MOVE with body are unsupported", x.copyOrMove)
	}
	return x.created(w, status), true
}

// davName returns the file of a path, in which ".." segments of root or alias have been resolved: one that is left is the client's, and
// is refused.
func davName(x *exchange, uri string) string {
	name, given := filename(x, uri), rootSlot.of(x.level).given
	if given == "" || !strings.HasPrefix(name, given) {
		return name
	}
	if !strings.HasPrefix(name[len(given):], "/") { // what follows continues the last segment
		given = given[:strings.LastIndexByte(given, '/')]
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return name
	}
	return strings.TrimSuffix(real, "/") + name[len(given):]
}

// created sends a response without content, and leaves errors to their pages.
func (x *exchange) created(w http.ResponseWriter, status int) int {
	switch status {
	case http.StatusCreated:
		w.Header().Set("Content-Length", "0")
	case http.StatusNoContent:
	default:
		return status
	}
	w.Header()["Content-Type"] = nil
	w.WriteHeader(status)
	return 0
}

// davFailed logs why a request fails.
func (x *exchange) davFailed(status int, why string) int {
	x.logError(why)
	return status
}

// davError logs an error of the system, and returns its status (ngx_http_dav_error). missing is
// that of a name that is not there.
func (x *exchange) davError(err error, call, name string, missing int) int {
	status, level := http.StatusInternalServerError, levelCrit
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		status, level = missing, levelError
	case errors.Is(err, fs.ErrPermission):
		status, level = http.StatusForbidden, levelError
	case errors.Is(err, fs.ErrExist):
		status, level = http.StatusMethodNotAllowed, levelError
	case errors.Is(err, syscall.ENOSPC):
		status = http.StatusInsufficientStorage
	}
	x.logAt(level, call+"() \""+name+"\" failed ("+conf.Errno(err)+")", "")
	return status
}

// withoutBody refuses a request with a body.
func (x *exchange) withoutBody(why string, serve func() int) int {
	if x.HTTP.ContentLength != 0 {
		return x.davFailed(http.StatusUnsupportedMediaType, why)
	}
	return serve()
}

// put stores the body of a request.
func (x *exchange) put(w http.ResponseWriter) int {
	name, s := davName(x, x.URI), davSlot.of(x.level)
	switch {
	case strings.HasSuffix(x.URI, "/"):
		return x.davFailed(http.StatusConflict, "cannot PUT to a collection")
	case x.HTTP.Header["Content-Range"] != nil:
		return x.davFailed(http.StatusNotImplemented, "PUT with range is unsupported")
	}
	status := http.StatusCreated
	if info, err := os.Stat(name); err == nil {
		if status = http.StatusNoContent; info.IsDir() {
			return x.davFailed(http.StatusConflict, "\""+name+"\" could not be created (21: Is a directory)")
		}
	}
	modified, err := http.ParseTime(x.HTTP.Header.Get("Date"))
	if err != nil {
		modified = time.Time{}
	}
	body := &timedBody{rc: http.NewResponseController(w), body: x.HTTP.Body, timeout: clientBodySlot.of(x.level).timeout}
	err = dav.Put(dav.File{Name: name, Mode: s.access, ModTime: modified, CreatePath: s.createPath}, body)
	switch {
	case body.err != nil:
		return bodyStatus(body.err)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return x.davError(err, "rename", name, http.StatusInternalServerError)
	case err != nil:
		return x.davError(err, "open", name, http.StatusInternalServerError)
	case status == http.StatusCreated:
		x.setLocation(w)
	}
	return x.created(w, status)
}

// bodyStatus returns the status for a body that can't be read.
func bodyStatus(err error) int {
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

// timedBody bounds the time of each read of a body.
type timedBody struct {
	rc      *http.ResponseController
	body    io.Reader
	timeout time.Duration
	err     error // of the body, but io.EOF
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	if b.timeout > 0 {
		_ = b.rc.SetReadDeadline(time.Now().Add(b.timeout))
		defer func() { _ = b.rc.SetReadDeadline(time.Time{}) }()
	}
	n, err := b.body.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

func (x *exchange) setLocation(w http.ResponseWriter) {
	redirectAs(x, w, http.StatusCreated, route.Escape(x.URI))
}

// delete deletes a file or a folder.
func (x *exchange) delete() int {
	if minDepth := davSlot.of(x.level).minDepth; minDepth > 0 {
		if depth := uriDepth(x.URI); depth < minDepth {
			return x.davFailed(http.StatusConflict, "insufficient URI depth to DELETE")
		}
	}
	name := davName(x, x.URI)
	info, err := os.Lstat(name)
	if err != nil {
		missing := http.StatusNotFound
		if errors.Is(err, syscall.ENOTDIR) {
			missing = http.StatusConflict
		}
		return x.davError(err, "lstat", name, missing)
	}
	depth := x.depth()
	switch {
	case info.IsDir() && !strings.HasSuffix(x.URI, "/"):
		return x.davFailed(http.StatusConflict, "DELETE \""+name+"\" failed (21: Is a directory)")
	case info.IsDir() && depth != "" && depth != depthInfinity:
		return x.davFailed(http.StatusBadRequest, "\"Depth\" header must be infinity")
	case depth != "" && depth != "0" && depth != depthInfinity:
		return x.davFailed(http.StatusBadRequest, "\"Depth\" header must be 0 or infinity")
	}
	if err := dav.Delete(name); err != nil {
		return x.davError(err, "unlink", name, http.StatusNotFound)
	}
	return http.StatusNoContent
}

// uriDepth counts the names that a path has before its last one, and the last one itself.
func uriDepth(uri string) int {
	depth := strings.Count(uri, "/")
	if strings.HasSuffix(uri, "/") {
		depth--
	}
	return depth
}

const depthInfinity = "infinity"

// depth returns the field Depth, "" if there is none.
func (x *exchange) depth() string {
	lines := x.HTTP.Header["Depth"]
	if len(lines) == 0 {
		return ""
	}
	switch depth := lines[0]; depth {
	case "0", "1", depthInfinity:
		return depth
	default:
		x.logError("client sent invalid \"Depth\" header: \"" + depth + "\"")
		return "invalid"
	}
}

// makeCollection creates a folder.
func (x *exchange) makeCollection(w http.ResponseWriter) int {
	if !strings.HasSuffix(x.URI, "/") {
		return x.davFailed(http.StatusConflict, "MKCOL can create a collection only")
	}
	name := davName(x, x.URI)
	if err := dav.Mkdir(name, davSlot.of(x.level).access); err != nil {
		return x.davError(err, "mkdir", name, http.StatusConflict)
	}
	x.setLocation(w)
	return http.StatusCreated
}
