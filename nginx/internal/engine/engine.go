package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/backend"
	"github.com/culvert-go/culvert/nginx/internal/engine/certs"
	"github.com/culvert-go/culvert/nginx/internal/engine/ocsp"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/statuspage"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Engine is a loaded configuration. Its methods may be called at any time and
// from any goroutine.
type Engine struct {
	prefix    string
	tree      *conf.Tree
	listeners []Listener
	quic      []QUICListener
	acme      acmeState
	streams   []StreamListener
	settings  Settings
	logger    *slog.Logger
	files     logFiles
	syslogs   []*syslogServer
	uncached  *certs.Cache    // of certificates with variables, where the configuration has no cache
	staplers  []*ocsp.Stapler // nil for a certificate that has none
	mainLog   *errorLogger
	tunnels   *wsupgrade.Registry // nil: they are not listed

	mu         sync.Mutex // guards what proxy_pass with variables creates at run time
	transports map[transportKey]*upstream.Transport
	backends   map[backendKey]*backend.Transport
	groups     map[string]*group // of http
	ofStream   map[string]*group // of stream
	names      resolvedNames
	mirrors    []*filters.Mirror
	errorPages func(http.Handler) http.Handler
	shared     shared
	backtracks bool // it has a regular expression whose matches can fail
	charsets   charsets
	scope      *vars.Scope
	status     *statuspage.Page // nil: there is no culvert_status
	extensions Extensions
}

// Load reads and compiles a configuration. If the configuration is at fault the error is an
// *Error, which prints as nginx's does. Log files are opened; sockets are not.
func Load(o LoadOptions) (*Engine, error) {
	prefix, err := filepath.Abs(o.Prefix)
	if err != nil {
		return nil, err
	}
	stderr := o.Stderr
	if stderr == nil {
		stderr = os.Stderr
	}
	file := absolute(prefix, o.File)
	if err := o.Extensions.check(); err != nil {
		return nil, err
	}
	tree, err := conf.Parse(conf.Options{File: file, Globals: o.Globals, ReadFile: o.ReadFile, Implemented: o.Extensions.specs(), OnError: o.OnError})
	if err != nil && (o.OnError == nil || tree.Main == nil) {
		return nil, err
	}
	var before shared
	if o.Before != nil {
		before = o.Before.shared
	}
	e := &Engine{
		prefix:   prefix,
		tree:     tree,
		settings: Settings{Notes: tree.Notes},
		files:    logFiles{stderr: stderr},
		tunnels:  o.Tunnels,
		acme:     newACMEState(),
		groups:   map[string]*group{},
		ofStream: map[string]*group{},

		transports: map[transportKey]*upstream.Transport{},
		backends:   map[backendKey]*backend.Transport{},
		shared:     sharedFrom(before),
		charsets:   newCharsets(),
		uncached:   certs.NewCache(uncachedPairs, 0, 0),
		extensions: o.Extensions,
	}
	if e.errorPages, err = cachectl.New(errorPageRules()); err != nil {
		return nil, err
	}
	list := append(modules(), o.Extensions.module())
	c := &compiler{
		engine:  e,
		prefix:  prefix,
		confDir: filepath.Dir(file),
		scope:   newScope(list),
		groups:  e.groups,
		before:  before,
		onError: o.OnError,
		failed:  map[string]bool{},
		first:   err,
	}
	c.use(list)
	o.Extensions.declare(c.scope)
	errorLogName := o.ErrorLog
	if errorLogName == "" {
		errorLogName = logStderr
	}
	if err := cmp.Or(c.fail(c.mainContext(tree.Main, errorLogName)), c.first); err != nil {
		e.Close()
		return nil, err
	}
	e.scope = c.scope
	return e, nil
}

// Notes reads a configuration and describes how culvert treats each of its directives. It stops
// at the first error that is not a refused directive.
func Notes(o LoadOptions) []Note {
	prefix, err := filepath.Abs(o.Prefix)
	if err != nil {
		return nil
	}
	tree, _ := conf.Parse(conf.Options{File: absolute(prefix, o.File), Globals: o.Globals, ReadFile: o.ReadFile, Implemented: o.Extensions.specs()})
	return tree.Notes
}

// setErrorLog makes log the main error log.
func (e *Engine) setErrorLog(log *errorLogger) {
	e.mainLog = log
	e.logger = slog.New(log)
	e.settings.ErrorLog = log.file().name
}

// Reopen reopens all log files (signal USR1), unless Close has been called. A file that cannot be
// opened is kept as it is, and the first such error is returned.
func (e *Engine) Reopen() error { return e.files.reopen() }

// OwnLogs makes a user the owner of the log files, so that Reopen works for it.
func (e *Engine) OwnLogs(uid, gid int) error { return e.files.own(uid, gid) }

// Close closes logs and idle connections to upstreams. Call it when no request is in flight any
// more.
func (e *Engine) Close() error {
	e.Retire()
	e.names.close()
	e.acme.end()
	for _, s := range e.staplers {
		if s != nil {
			s.Close()
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, m := range e.mirrors {
		_ = m.Close(ended) // running copies are cancelled
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, groups := range []map[string]*group{e.groups, e.ofStream} {
		for _, g := range groups {
			g.close()
		}
	}
	for _, t := range e.transports {
		t.CloseIdleConnections()
	}
	for _, t := range e.backends {
		t.CloseIdleConnections()
	}
	e.files.close()
	for _, s := range e.syslogs {
		s.close()
	}
	return nil
}

// Dump writes the configuration's files as nginx -T does.
func (e *Engine) Dump(w io.Writer) {
	for _, f := range e.tree.Files {
		fmt.Fprintf(w, "# configuration file %s:\n%s\n", f.Name, f.Data)
	}
}
