package engine

import (
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"sync"

	httpheader "github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/htpasswd"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// authBasicModule requires a password (ngx_http_auth_basic_module.c).
var authBasicModule = module{
	directives: []directive{
		{name: "auth_basic", compile: authBasic},
		{name: "auth_basic_user_file", compile: authBasicUserFile},
	},
	active: func(l *level) bool { return authBasicSlot.of(l).on && authBasicSlot.of(l).files != nil },
	hooks:  hooks{access: byPassword},
}

var authBasicSlot = newSlot(authRule{})

// authRule is auth_basic and its file (ngx_http_auth_basic_module.c).
type authRule struct {
	on    bool
	realm vars.Value
	file  vars.Value
	files *passwordFiles // nil without a file
}

// authBasic compiles "auth_basic string|off".
func authBasic(c *compiler, l *level, d *conf.Directive) (err error) {
	rule := authBasicSlot.edit(l)
	rule.on = d.Args[0] != "off"
	rule.realm, err = c.value(d, d.Args[0])
	return err
}

// authBasicUserFile compiles "auth_basic_user_file file".
func authBasicUserFile(c *compiler, l *level, d *conf.Directive) (err error) {
	rule := authBasicSlot.edit(l)
	rule.file, err = c.value(d, absolute(c.confDir, d.Args[0]))
	rule.files = new(passwordFiles)
	return err
}

// byPassword checks the user and the password. If it refuses, the status is 401, 407 for CONNECT, or that of a
// file that can't be read.
func byPassword(x *exchange, w http.ResponseWriter) (v verdict, status int) {
	rule := authBasicSlot.of(x.level)
	realm := rule.realm.String(&x.Request)
	if realm == "off" {
		return declined, 0
	}
	user, password, ok := httpheader.BasicAuth(x.HTTP)
	if !ok || user == "" {
		x.logError("no user/password was provided for basic authentication")
		return askForPassword(x, w, realm)
	}
	name := rule.file.String(&x.Request)
	ok, err := rule.files.check(name, x.HTTP, user, password)
	if err != nil {
		x.logError("open() \"" + name + "\" failed: " + err.Error())
		if errors.Is(err, fs.ErrNotExist) {
			return refused, http.StatusForbidden
		}
		return refused, http.StatusInternalServerError
	}
	if !ok {
		x.logError("user \"" + user + "\": password mismatch or not found in \"" + name + "\"")
		return askForPassword(x, w, realm)
	}
	return granted, 0
}

// askForPassword refuses the request for want of a password, which for CONNECT is one for a proxy.
func askForPassword(x *exchange, w http.ResponseWriter, realm string) (verdict, int) {
	field, status := "WWW-Authenticate", http.StatusUnauthorized
	if x.HTTP.Method == http.MethodConnect {
		field, status = "Proxy-Authenticate", http.StatusProxyAuthRequired
	}
	w.Header().Set(field, `Basic realm="`+strings.ReplaceAll(realm, `"`, `\"`)+`"`)
	return refused, status
}

// passwordFiles are the files that were opened.
type passwordFiles struct {
	mu    sync.Mutex
	files map[string]*htpasswd.File
}

// maxPasswordFiles bounds the files: a name may have variables.
const maxPasswordFiles = 100

// check reports whether the named file has the user with the password.
func (p *passwordFiles) check(name string, r *http.Request, user, password string) (bool, error) {
	file, err := p.open(name)
	if err != nil {
		return false, err
	}
	return file.Check(r, user, password)
}

func (p *passwordFiles) open(name string) (*htpasswd.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if file := p.files[name]; file != nil {
		return file, nil
	}
	file, err := htpasswd.Open(name)
	if err != nil {
		return nil, err
	}
	if p.files == nil || len(p.files) >= maxPasswordFiles {
		p.files = map[string]*htpasswd.File{}
	}
	p.files[name] = file
	return file, nil
}
