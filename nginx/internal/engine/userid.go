package engine

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// useridModule gives clients an id in a cookie (ngx_http_userid_filter_module.c).
var useridModule = module{
	directives: []directive{
		{name: "userid", compile: userid},
		{name: "userid_domain", compile: userid},
		{name: "userid_expires", compile: userid},
		{name: "userid_flags", compile: userid},
		{name: "userid_name", compile: userid},
		{name: "userid_p3p", compile: userid},
		{name: "userid_path", compile: userid},
	},
	variables: map[string]variable{
		"uid_got": nonEmpty(func(x *exchange) string { got, _ := userIDs(x); return got }),
		"uid_set": nonEmpty(func(x *exchange) string { _, set := userIDs(x); return set }),
	},
	hooks: hooks{header: sendUserID},
}

var useridSlot = newSlot(useridRule{name: "uid", path: "/"})

// useridRule is how clients receive an id in a cookie (ngx_http_userid_filter_module.c).
type useridRule struct {
	mode    string // "on", "v1", "log", or "" for off
	name    string
	domain  string
	path    string
	expires time.Duration // 0: with the browser
	max     bool
	p3p     string
	flags   []string
}

// userid compiles the userid directives. Ids of "v1" are made like those of "on": they differ
// only in their bytes.
func userid(_ *compiler, l *level, d *conf.Directive) error {
	u, arg := useridSlot.edit(l), d.Args[0]
	unlessNone := func(to *string) {
		if *to = arg; arg == "none" {
			*to = ""
		}
	}
	switch d.Name {
	case "userid":
		switch arg {
		case "on", "v1", "log":
			u.mode = arg
		case "off":
			u.mode = ""
		default:
			return d.Errorf("invalid value \"%s\"", arg)
		}
	case "userid_name":
		u.name = arg
	case "userid_domain":
		unlessNone(&u.domain)
	case "userid_path":
		u.path = arg
	case "userid_p3p":
		unlessNone(&u.p3p)
	case "userid_expires":
		return u.setExpires(d)
	case "userid_flags":
		return u.setFlags(d)
	}
	return nil
}

func (u *useridRule) setExpires(d *conf.Directive) error {
	u.expires, u.max = 0, false
	switch d.Args[0] {
	case "max":
		u.max = true
		return nil
	case "off":
		return nil
	}
	t, ok := conf.Duration(d.Args[0])
	if !ok {
		return d.Invalid()
	}
	u.expires = t
	return nil
}

func (u *useridRule) setFlags(d *conf.Directive) error {
	u.flags = nil
	for _, flag := range d.Args {
		name, ok := map[string]string{"secure": "secure", "httponly": "httponly", "samesite=strict": "samesite=strict",
			"samesite=lax": "samesite=lax", "samesite=none": "samesite=none"}[flag]
		switch {
		case flag == "off" && len(d.Args) == 1:
		case ok:
			u.flags = append(u.flags, name)
		default:
			return d.Errorf("invalid value \"%s\"", flag)
		}
	}
	return nil
}

// useridState is that of one request.
type useridState struct {
	assigned []byte // the new client's id
}

// userIDs returns the client's id as got, or a new one as set.
func userIDs(x *exchange) (got, set string) {
	u := useridSlot.of(x.level)
	if u.mode == "" {
		return "", ""
	}
	if id := decodeUserID(vars.Cookie(x.HTTP, u.name)); id != nil {
		return logUserID(u.name, id), ""
	}
	if u.mode == "log" {
		return "", ""
	}
	if x.userid.assigned == nil {
		x.userid.assigned = make([]byte, 16)
		_, _ = rand.Read(x.userid.assigned) // never fails
	}
	return "", logUserID(u.name, x.userid.assigned)
}

// decodeUserID decodes a cookie's 22 characters and perhaps "==".
func decodeUserID(cookie string) []byte {
	if len(cookie) < 22 {
		return nil
	}
	id, err := base64.RawStdEncoding.DecodeString(cookie[:22])
	if err != nil || len(id) != 16 || [4]byte(id[12:]) == [4]byte{} {
		return nil
	}
	return id
}

// logUserID formats an id as in logs: four numbers in the order of little-endian machines.
func logUserID(name string, id []byte) string {
	var b strings.Builder
	b.WriteString(name + "=")
	for i := 0; i < len(id); i += 4 {
		word := []byte{id[i+3], id[i+2], id[i+1], id[i]}
		b.WriteString(strings.ToUpper(hex.EncodeToString(word)))
	}
	return b.String()
}

// sendUserID sends a new client its id.
func sendUserID(x *exchange, h http.Header) {
	u := useridSlot.of(x.level)
	if x.Status == http.StatusSwitchingProtocols || u.mode != "on" && u.mode != "v1" {
		return
	}
	if _, set := userIDs(x); set == "" {
		return
	}
	cookie := u.name + "=" + base64.StdEncoding.EncodeToString(x.userid.assigned)
	switch {
	case u.max:
		cookie += "; expires=Thu, 31-Dec-37 23:55:55 GMT"
	case u.expires > 0:
		cookie += "; expires=" + time.Now().Add(u.expires).UTC().Format("Mon, 02-Jan-06 15:04:05 GMT")
	}
	if u.domain != "" {
		cookie += "; domain=" + u.domain
	}
	cookie += "; path=" + u.path
	for _, flag := range u.flags {
		cookie += "; " + flag
	}
	h.Add("Set-Cookie", cookie)
	if u.p3p != "" {
		h.Add("P3P", u.p3p)
	}
}
