package engine

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tg123/go-htpasswd"

	"github.com/culvert-go/culvert/nginx/conf"
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

// byPassword checks the user and the password. If it refuses, the status is 401, or that of a
// file that can't be read.
func byPassword(x *exchange, w http.ResponseWriter) (v verdict, status int) {
	rule := authBasicSlot.of(x.level)
	realm := rule.realm.String(&x.Request)
	if realm == "off" {
		return declined, 0
	}
	user, password, ok := x.HTTP.BasicAuth()
	if !ok || user == "" {
		x.logError("no user/password was provided for basic authentication")
		return askForPassword(w, realm)
	}
	name := rule.file.String(&x.Request)
	users, err := rule.files.read(name)
	if err != nil {
		x.logError("open() \"" + name + "\" failed: " + err.Error())
		if errors.Is(err, fs.ErrNotExist) {
			return refused, http.StatusForbidden
		}
		return refused, http.StatusInternalServerError
	}
	if !users.Match(user, password) {
		x.logError("user \"" + user + "\": password mismatch or not found in \"" + name + "\"")
		return askForPassword(w, realm)
	}
	return granted, 0
}

func askForPassword(w http.ResponseWriter, realm string) (verdict, int) {
	w.Header().Set("WWW-Authenticate", `Basic realm="`+strings.ReplaceAll(realm, `"`, `\"`)+`"`)
	return refused, http.StatusUnauthorized
}

// passwordFiles caches password files until they change.
type passwordFiles struct {
	mu    sync.Mutex
	files map[string]passwordFile
}

type passwordFile struct {
	users *htpasswd.File
	at    time.Time
	size  int64
}

// maxPasswordFiles bounds the cached files: a name may have variables.
const maxPasswordFiles = 100

// schemes are the hashes that nginx and crypt(3) know, except traditional DES.
var schemes = []htpasswd.PasswdParser{htpasswd.AcceptMd5, htpasswd.AcceptSha, htpasswd.AcceptSsha, htpasswd.AcceptBcrypt, htpasswd.AcceptCryptSha, acceptPlain}

// acceptPlain accepts "{PLAIN}password".
func acceptPlain(s string) (htpasswd.EncodedPasswd, error) {
	if plain, ok := strings.CutPrefix(s, "{PLAIN}"); ok {
		return htpasswd.AcceptPlain(plain)
	}
	return nil, nil
}

func (p *passwordFiles) read(name string) (*htpasswd.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if have, ok := p.files[name]; ok && have.at.Equal(info.ModTime()) && have.size == info.Size() {
		return have.users, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	users, err := htpasswd.NewFromReader(strings.NewReader(withoutComments(string(text))), schemes, nil)
	if err != nil {
		return nil, err
	}
	if p.files == nil || len(p.files) >= maxPasswordFiles {
		p.files = map[string]passwordFile{}
	}
	p.files[name] = passwordFile{users, info.ModTime(), info.Size()}
	return users, nil
}

// withoutComments removes the comment of each "user:password:comment".
func withoutComments(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		user, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.HasPrefix(user, "#") {
			continue
		}
		password, _, _ := strings.Cut(rest, ":")
		b.WriteString(user + ":" + password + "\n")
	}
	return b.String()
}
