package engine

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// useridModule gives clients an id in a cookie (ngx_http_userid_filter_module.c).
var useridModule = module{
	directives: []directive{
		{name: "userid", compile: setWord(useridSlot, func(u *useridRule) *string { return &u.mode },
			map[string]string{"on": "on", "v1": "v1", "log": "log", "off": ""})},
		{name: "userid_domain", compile: unlessNone(func(u *useridRule) *string { return &u.domain })},
		{name: "userid_expires", compile: useridExpires},
		{name: "userid_flags", compile: useridFlags},
		{name: "userid_mark", compile: useridMark},
		{name: "userid_name", compile: setText(useridSlot, func(u *useridRule) *string { return &u.name })},
		{name: "userid_p3p", compile: unlessNone(func(u *useridRule) *string { return &u.p3p })},
		{name: "userid_path", compile: setText(useridSlot, func(u *useridRule) *string { return &u.path })},
		{name: "userid_service", compile: useridService},
	},
	variables: map[string]variable{
		"uid_got": nonEmpty(func(x *exchange) string { got, _ := userIDs(x); return got }),
		"uid_set": nonEmpty(func(x *exchange) string { _, set := userIDs(x); return set }),
	},
	active: func(l *level) bool { return useridSlot.of(l).mode == "on" || useridSlot.of(l).mode == "v1" },
	hooks:  hooks{header: sendUserID},
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
	service *uint32 // the first number of ids; nil: the server's address, or 0 for v1
	mark    string  // of the cookies; "" is none
}

// useridMark compiles "userid_mark letter|digit|=|off".
func useridMark(_ *compiler, l *level, d *conf.Directive) error {
	u := useridSlot.edit(l)
	switch mark := d.Args[0]; {
	case mark == "off":
		u.mark = ""
	case len(mark) == 1 && consistsOf(mark, "="):
		u.mark = mark
	default:
		return d.Errorf("\"userid_mark\" directive value must be \"off\" or a single letter, digit or \"=\"")
	}
	return nil
}

// useridService compiles "userid_service number".
func useridService(_ *compiler, l *level, d *conf.Directive) error {
	n, err := d.Number()
	service := uint32(n)
	useridSlot.edit(l).service = &service
	return err
}

// unlessNone compiles a text that "none" unsets.
func unlessNone(field func(*useridRule) *string) compileFunc {
	return func(_ *compiler, l *level, d *conf.Directive) error {
		text := d.Args[0]
		if text == "none" {
			text = ""
		}
		*field(useridSlot.edit(l)) = text
		return nil
	}
}

// useridExpires compiles "userid_expires time|max|off".
func useridExpires(_ *compiler, l *level, d *conf.Directive) error {
	u := useridSlot.edit(l)
	u.expires, u.max = 0, d.Args[0] == "max"
	if u.max || d.Args[0] == "off" {
		return nil
	}
	var err error
	u.expires, err = d.Duration()
	return err
}

// userFlags are the words of userid_flags, in the order of their attributes.
var userFlags = []string{"secure", "httponly", "samesite=strict", "samesite=lax", "samesite=none"}

// useridFlags compiles "userid_flags off|flag ...".
func useridFlags(_ *compiler, l *level, d *conf.Directive) error {
	u := useridSlot.edit(l)
	u.flags = nil
	if len(d.Args) == 1 && d.Args[0] == "off" {
		return nil
	}
	for _, flag := range d.Args {
		if !slices.Contains(userFlags, flag) {
			return d.Errorf("invalid value \"%s\"", flag)
		}
	}
	u.flags = slices.DeleteFunc(slices.Clone(userFlags), func(flag string) bool { return !slices.Contains(d.Args, flag) })
	return nil
}

// useridState is that of one request.
type useridState struct {
	assigned []byte // the client's new id
}

// userIDs returns the client's id as got, and the one that it is sent as set.
func userIDs(x *exchange) (got, set string) {
	u := useridSlot.of(x.level)
	if u.mode == "" {
		return "", ""
	}
	id := decodeUserID(vars.Cookie(x.HTTP, u.name))
	if id != nil {
		got = logUserID(u.name, id)
	}
	if x.userid.assigned == nil {
		x.userid.assigned = u.assign(x, id)
	}
	if x.userid.assigned == nil {
		return got, ""
	}
	return got, logUserID(u.name, x.userid.assigned)
}

// assign returns the id that the client is to be sent: a new one, that which it has if it lacks the mark, or nil for none.
func (u *useridRule) assign(x *exchange, has []byte) []byte {
	if u.mode == "log" {
		return nil
	}
	if has != nil {
		switch reset, _ := x.engine.scope.Find("uid_reset")(&x.Request); reset {
		case "", "0":
			if cookie := vars.Cookie(x.HTTP, u.name); u.mark != "" && !strings.HasPrefix(cookie[22:], u.mark+"=") {
				return has
			}
			return nil
		case "log":
			x.logAt(LevelNotice, "userid cookie \""+logUserID(u.name, has)+"\" was reset", "")
		}
	}
	return u.newID(x)
}

// newID returns a new id: the first number of a service, and random bytes. nginx's are the time, the process and a count, by
// which the ids of others can be found.
func (u *useridRule) newID(x *exchange) []byte {
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	id[15] |= 1          // the last number is not 0
	switch {
	case u.mode == "v1" && u.service != nil:
		binary.LittleEndian.PutUint32(id, *u.service)
	case u.service != nil:
		binary.BigEndian.PutUint32(id, *u.service)
	default:
		clear(id[:4])
		if addr := localIP(x.HTTP).Unmap().AsSlice(); u.mode != "v1" && len(addr) > 0 {
			copy(id, addr[len(addr)-4:])
		}
	}
	return id
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
	if x.Status == http.StatusSwitchingProtocols {
		return
	}
	if _, set := userIDs(x); set == "" {
		return
	}
	text := []byte(base64.StdEncoding.EncodeToString(x.userid.assigned))
	if u.mark != "" {
		text[22] = u.mark[0]
	}
	cookie := u.name + "=" + string(text)
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
