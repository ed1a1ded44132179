package main

import (
	"net/http"
	"strings"
)

// route is an entry of a rule's router: a host, a path ("/rest"), or both
// ("localhost:9000/api").
type route struct {
	key    string
	target *target
}

func (d *devProxy) newRoutes(r *compiled) (list []route, err error) {
	for _, entry := range r.Router {
		t, err := d.newTarget(r, entry.value)
		if err != nil {
			return nil, &fieldError{entry.line, "router", err}
		}
		list = append(list, route{entry.key, t})
	}
	return list, nil
}

// choose returns the target of the first route that matches, else the rule's own.
func (r *compiled) choose(req *http.Request) *target {
	for _, route := range r.routes {
		if route.fits(req.Host, req.URL.EscapedPath()) {
			return route.target
		}
	}
	return r.target
}

func (r route) fits(host, path string) bool {
	switch {
	case strings.HasPrefix(r.key, "/"):
		return strings.HasPrefix(path, r.key)
	case strings.Contains(r.key, "/"):
		return strings.HasPrefix(host+path, r.key)
	}
	return strings.EqualFold(host, r.key)
}
