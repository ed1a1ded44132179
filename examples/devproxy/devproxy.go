package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/upstream"
)

// devProxy is the handler: the first rule whose context matches is applied.
type devProxy struct {
	rules   []*compiled
	static  http.Handler // nil: there is none
	log     *log
	handler http.Handler
	groups  []*upstream.Group

	followers []*follower
}

// compiled is a compiled rule.
type compiled struct {
	*rule
	context *matcher
	paths   []pathRule
	bypass  []bypassRule
	routes  []route
	target  *target // nil: only the router decides
}

type pathRule struct {
	re   *regexp.Regexp
	with string
}

func newDevProxy(c *config, l *log) (*devProxy, error) {
	d := &devProxy{log: l}
	if c.Static != "" {
		d.static = http.FileServer(http.Dir(c.Static))
	}
	for _, r := range c.Proxy {
		ready, err := d.compile(r)
		if err != nil {
			d.close()
			return nil, fmt.Errorf("%s:%w", c.file, err)
		}
		d.rules = append(d.rules, ready)
	}
	d.handler = filters.NewChain(filters.OnResponse(d.log.hooks())).ThenFunc(d.route)
	return d, nil
}

func (d *devProxy) compile(r *rule) (*compiled, error) {
	ready := &compiled{rule: r}
	var err error
	if ready.context, err = newMatcher(r.Context); err != nil {
		return nil, r.at("context", err)
	}
	for _, p := range r.PathRewrite {
		re, err := regexp.Compile(p.key)
		if err != nil {
			return nil, &fieldError{p.line, "pathRewrite", err}
		}
		ready.paths = append(ready.paths, pathRule{re, goReplacement(p.value)})
	}
	if ready.bypass, err = newBypass(r.Bypass); err != nil {
		return nil, r.at("bypass", err)
	}
	if r.Target != "" {
		if ready.target, err = d.newTarget(ready, r.Target); err != nil {
			return nil, r.at("target", err)
		}
	}
	ready.routes, err = d.newRoutes(ready)
	return ready, err
}

// goReplacement turns JavaScript's $1 into Go's ${1}: "$1x" is another name in Go.
func goReplacement(s string) string {
	return regexp.MustCompile(`\$(\d)`).ReplaceAllString(s, "$${$1}")
}

func (d *devProxy) close() {
	for _, g := range d.groups {
		g.Close()
	}
	for _, f := range d.followers {
		f.close()
	}
}

func (d *devProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.handler.ServeHTTP(w, d.log.begin(r))
}

// route serves by the first rule that matches, or the files.
func (d *devProxy) route(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	for _, rule := range d.rules {
		if !rule.context.fits(path) {
			continue
		}
		if b := rule.bypassed(r); b != nil {
			d.serveBypass(w, r, b)
			return
		}
		if t := rule.choose(r); t != nil {
			noteTarget(r, t, rule.LogLevel)
			t.proxy.ServeHTTP(w, r)
			return
		}
	}
	if d.static == nil {
		http.Error(w, "devproxy: no rule fits "+r.URL.Path, http.StatusNotFound)
		return
	}
	d.static.ServeHTTP(w, r)
}

// bypassRule is a compiled bypass.
type bypassRule struct {
	bypass
	path *matcher // nil: any
}

func newBypass(list bypassList) ([]bypassRule, error) {
	var ready []bypassRule
	for _, b := range list {
		r := bypassRule{bypass: b}
		if b.Path != "" {
			var err error
			if r.path, err = newMatcher([]string{b.Path}); err != nil {
				return nil, err
			}
		}
		ready = append(ready, r)
	}
	return ready, nil
}

// bypassed returns the first bypass that matches, nil for none.
func (r *compiled) bypassed(req *http.Request) *bypassRule {
	for i := range r.bypass {
		b := &r.bypass[i]
		if (b.path == nil || b.path.fits(req.URL.EscapedPath())) && strings.Contains(req.Header.Get("Accept"), b.Accept) {
			return b
		}
	}
	return nil
}

func (d *devProxy) serveBypass(w http.ResponseWriter, r *http.Request, b *bypassRule) {
	if b.Status != 0 {
		w.WriteHeader(b.Status)
		return
	}
	file := r.Clone(r.Context())
	file.URL.Path, file.URL.RawPath = strings.TrimSuffix(b.Serve, "index.html"), ""
	d.static.ServeHTTP(w, file)
}
