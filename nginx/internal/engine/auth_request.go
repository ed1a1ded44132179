package engine

import (
	"net/http"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

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
	l.authRequest.uri = d.Args[0]
	if d.Args[0] == "off" {
		l.authRequest.uri = ""
	}
	return nil
}

// authRequestSet compiles "auth_request_set $variable value".
func authRequestSet(c *compiler, l *level, d *conf.Directive) error {
	if l.first("auth_request_set") {
		l.authRequest.set = nil
	}
	v, err := c.value(d, d.Args[1])
	if err != nil {
		return err
	}
	name, _ := setName(d)
	l.authRequest.set = append(l.authRequest.set[:len(l.authRequest.set):len(l.authRequest.set)], authVariable{name, v})
	return nil
}

// bySubrequest sends a subrequest to the location that auth_request names.
func (x *exchange) bySubrequest(w http.ResponseWriter) (verdict, int) {
	rule := &x.level.authRequest
	if rule.uri == "" {
		return declined, 0
	}
	sub := x.subrequest(rule.uri)
	for _, v := range rule.set {
		x.assign(v.name, v.value.String(&sub.Request))
	}
	x.Join(&sub.Request)
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
