package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// authRequestModule lets another location decide whether a request is allowed (ngx_http_auth_request_module.c).
var authRequestModule = module{
	directives: []directive{
		{name: "auth_request", compile: authRequest},
		{name: "auth_request_set", repeatable: true, compile: authRequestSet, sets: declareSet},
	},
	active: func(l *level) bool { return authRequestSlot.of(l).uri != "" },
	hooks:  hooks{access: bySubrequest},
}

var authRequestSlot = newSlot(authRequestRule{})

// authRequestRule is auth_request with its auth_request_set
// (ngx_http_auth_request_module.c).
type authRequestRule struct {
	uri string // "" is off
	set []authVariable
}

type authVariable struct {
	name  string
	value vars.Value // evaluated in the subrequest
}

// authRequest compiles "auth_request uri|off".
func authRequest(_ *compiler, l *level, d *conf.Directive) error {
	rule := authRequestSlot.edit(l)
	rule.uri = d.Args[0]
	if d.Args[0] == "off" {
		rule.uri = ""
	}
	return nil
}

// authRequestSet compiles "auth_request_set $variable value".
func authRequestSet(c *compiler, l *level, d *conf.Directive) error {
	rule := authRequestSlot.edit(l)
	if l.first("auth_request_set") {
		rule.set = nil
	}
	v, err := c.value(d, d.Args[1])
	if err != nil {
		return err
	}
	name, _ := setName(d)
	rule.set = append(rule.set, authVariable{name, v})
	return nil
}

// bySubrequest sends a subrequest to the location that auth_request names.
func bySubrequest(x *exchange, w http.ResponseWriter) (verdict, int) {
	rule := authRequestSlot.of(x.level)
	sub, err := x.subrequest(rule.uri, "", nil) // as in nginx a "?" in it begins no query
	if err != nil {
		return refused, http.StatusInternalServerError
	}
	sub.serveSubrequest()
	for _, v := range rule.set {
		assign(x, v.name, v.value.String(&sub.Request))
	}
	x.rejoin(sub)
	switch {
	case sub.Status == http.StatusForbidden:
		return refused, sub.Status
	case sub.Status == http.StatusUnauthorized:
		if lines := sub.Header["Www-Authenticate"]; lines != nil {
			w.Header()["Www-Authenticate"] = lines
		}
		return refused, sub.Status
	case sub.Status >= 200 && sub.Status < 300:
		return granted, 0
	}
	x.logError("auth request unexpected status: " + http.StatusText(sub.Status))
	return refused, http.StatusInternalServerError
}
