package engine

import (
	"crypto/md5"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/upstream"
)

// stickyRule is how requests of a session get to one server (ngx_http_upstream_sticky_module.c).
type stickyRule struct {
	lookup   []vars.Getter // the first that is not empty names a server, or a session
	create   []vars.Getter // of learn: the session of a response
	cookie   *stickyCookie // nil: none is set
	sessions *sessions     // of learn; nil: lookup names a server
	early    bool          // sessions are learnt at the header of a response

	sids sync.Map // the ids of servers by address
}

// stickyCookie is "sticky cookie".
type stickyCookie struct {
	name, path, expires string
	maxAge              time.Duration // beside "expires"
	relative            bool
	domain, sameSite    vars.Value
	secure, httpOnly    bool
}

// groupSticky compiles "sticky cookie|route|learn ...".
func groupSticky(c *compiler, g *group, d *conf.Directive) (err error) {
	rule := &stickyRule{}
	switch d.Args[0] {
	case "cookie":
		err = rule.cookieParameters(c, d)
	case "route":
		for _, arg := range d.Args[1:] {
			if !strings.HasPrefix(arg, "$") {
				return d.Errorf("invalid variable name \"%s\"", arg)
			}
			if err := rule.variable(c, d, &rule.lookup, arg); err != nil {
				return err
			}
		}
	case "learn":
		err = rule.learnParameters(c, d)
	default:
		return d.Errorf("unknown parameter \"%s\"", d.Args[0])
	}
	g.sticky = rule
	return err
}

func (s *stickyRule) variable(c *compiler, d *conf.Directive, list *[]vars.Getter, arg string) error {
	get, err := c.scope.Named(strings.TrimPrefix(arg, "$"))
	if err != nil {
		return d.Errorf("%s", err)
	}
	*list = append(*list, get)
	return nil
}

func (s *stickyRule) cookieParameters(c *compiler, d *conf.Directive) (err error) {
	k := &stickyCookie{name: d.Args[1]}
	if k.name == "" {
		return d.Errorf("empty cookie name")
	}
	seen := map[string]bool{}
	for _, arg := range d.Args[2:] {
		key, value, hasValue := strings.Cut(arg, "=")
		if seen[key] {
			return d.Errorf("parameter \"%s\" is duplicate", key)
		}
		seen[key] = true
		if hasValue && value == "" && (key == "domain" || key == "path") {
			return d.Errorf("no value for \"%s\"", key)
		}
		switch {
		case key == "domain" && hasValue:
			k.domain, err = c.value(d, value)
		case key == "path" && hasValue:
			k.path = "; path=" + value
		case arg == "expires=max":
			k.expires = "; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000"
		case key == "expires" && hasValue:
			if k.maxAge, k.relative = conf.Duration(value); !k.relative {
				return d.Errorf("invalid \"expires\" parameter value")
			}
		case arg == "secure":
			k.secure = true
		case arg == "httponly":
			k.httpOnly = true
		case key == "samesite" && hasValue:
			if k.sameSite, err = c.value(d, value); err != nil {
				return err
			}
			if text, constant := k.sameSite.Literal(); constant && !isSameSite(text) {
				return d.Errorf("invalid \"samesite\" parameter value")
			}
		default:
			return d.Errorf("unknown parameter \"%s\"", arg)
		}
		if err != nil {
			return err
		}
	}
	s.cookie = k
	return s.variable(c, d, &s.lookup, "$cookie_"+k.name)
}

func isSameSite(text string) bool {
	switch strings.ToLower(text) {
	case "strict", "lax", "none":
		return true
	}
	return false
}

func (s *stickyRule) learnParameters(c *compiler, d *conf.Directive) error {
	timeout, size, zone := 10*time.Minute, int64(0), ""
	for _, arg := range d.Args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch {
		case key == "zone":
			var ok bool
			if zone, size, ok = zoneParameter(value); !ok {
				return d.Errorf("invalid zone size")
			}
			if size < 8<<12 {
				return d.Errorf("zone is too small")
			}
		case key == "timeout":
			var ok bool
			if timeout, ok = conf.Duration(value); !ok || timeout == 0 {
				return d.Errorf("invalid timeout")
			}
		case key == "create" && strings.HasPrefix(value, "$"):
			err = s.variable(c, d, &s.create, value)
		case key == "lookup" && strings.HasPrefix(value, "$"):
			err = s.variable(c, d, &s.lookup, value)
		case key == "create", key == "lookup":
			return d.Errorf("missing variable in the \"%s\" parameter", key)
		case arg == "header":
			s.early = true
		default:
			return d.Errorf("unknown parameter \"%s\"", arg)
		}
		if err != nil {
			return err
		}
	}
	for name, missing := range map[string]bool{"lookup": len(s.lookup) == 0, "create": len(s.create) == 0, "zone": size == 0} {
		if missing {
			return d.Errorf("\"%s\" parameter is not specified", name)
		}
	}
	known := c.engine.shared.sessions
	if known[zone] != nil {
		return d.Errorf("sticky zone \"%s\" is already used in another upstream", zone)
	}
	s.sessions = newSessions(int(size/stateSize), timeout)
	if before := c.before.sessions[zone]; before != nil && before.most == s.sessions.most {
		s.sessions = before
		before.setTimeout(timeout)
	}
	known[zone] = s.sessions
	return nil
}

// over returns a balance that sends the requests of a session to its server, and others as b does.
func (s *stickyRule) over(b upstream.Balance) upstream.Balance {
	return upstream.Affinity(upstream.AffinityOptions{Otherwise: b, Want: s.want, Key: func(t upstream.Target) string {
		sid, _ := t.Value.(string) // of "route="
		if sid == "" {
			sum := md5.Sum([]byte(t.Addr))
			sid = hex.EncodeToString(sum[:])
		}
		s.sids.Store(t.Addr, sid)
		return sid
	}})
}

// want returns the id of the server that a request is for, "" if there is none.
func (s *stickyRule) want(r *http.Request) string {
	x := exchangeOf(r.Context())
	if x == nil {
		return ""
	}
	x.proxy.sticky = s
	id := firstOf(x, s.lookup)
	if id == "" || s.sessions == nil {
		return id
	}
	return s.sessions.server(id)
}

func firstOf(x *exchange, list []vars.Getter) string {
	for _, get := range list {
		if v, ok := get(&x.Request); ok && v != "" {
			return v
		}
	}
	return ""
}

// sid returns the id of the server that has got the request last, "" if there is none.
func (s *stickyRule) sid(x *exchange) string {
	if x.Upstream == nil || len(x.Upstream.Attempts) == 0 {
		return ""
	}
	sid, _ := s.sids.Load(x.Upstream.Attempts[len(x.Upstream.Attempts)-1].Target)
	text, _ := sid.(string)
	return text
}

// stickyHeader sets the cookie, and learns sessions at the header of a response.
func stickyHeader(x *exchange, h http.Header) {
	s := x.proxy.sticky
	if s == nil {
		return
	}
	if s.early {
		s.learn(x)
	}
	sid := s.sid(x)
	if s.cookie != nil && sid != "" {
		h["Set-Cookie"] = append([]string{s.cookie.value(x, sid)}, h["Set-Cookie"]...)
	}
}

// stickyEnd learns sessions when the response is complete.
func stickyEnd(x *exchange) {
	if s := x.proxy.sticky; s != nil && !s.early {
		s.learn(x)
	}
}

// learn notes the server of the response's session, or that of the request is still in use.
func (s *stickyRule) learn(x *exchange) {
	sid := s.sid(x)
	if s.sessions == nil || sid == "" || !x.proxy.responded {
		return
	}
	if id := firstOf(x, s.create); id != "" {
		s.sessions.store(id, sid, true)
	} else if id := firstOf(x, s.lookup); id != "" {
		s.sessions.store(id, sid, false)
	}
}

// value returns a Set-Cookie.
func (k *stickyCookie) value(x *exchange, sid string) string {
	text := k.name + "=" + sid + k.expires
	if k.relative {
		at := time.Now().Add(k.maxAge).UTC()
		text += "; expires=" + at.Format("Mon, 02-Jan-06 15:04:05 GMT") + "; max-age=" + strconv.FormatInt(int64(k.maxAge/time.Second), 10)
	}
	if domain := k.domain.String(&x.Request); domain != "" {
		text += "; domain=" + domain
	}
	if k.httpOnly {
		text += "; httponly"
	}
	if k.secure {
		text += "; secure"
	}
	if site := k.sameSite.String(&x.Request); site != "" {
		if !isSameSite(site) {
			site = "strict"
		}
		text += "; samesite=" + site
	}
	return text + k.path
}
