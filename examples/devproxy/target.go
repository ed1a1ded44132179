package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// target is one server that a rule forwards to.
type target struct {
	url   *url.URL
	group *upstream.Group
	proxy *proxy.Proxy
}

// newTarget creates the proxy of r to a server.
func (d *devProxy) newTarget(r *compiled, text string) (*target, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err) // the rest of whose text may have a password
	case u.User != nil || u.Opaque != "" && strings.Contains(text, "@"):
		return nil, errors.New("a user in the URL is not sent: write it into auth, user:password")
	}
	scheme, port := "http", "80"
	switch u.Scheme {
	case "http", "ws":
	case "https", "wss":
		scheme, port = "https", "443"
	default:
		return nil, fmt.Errorf("%q: the scheme must be http, https, ws or wss", text)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("%q has no host", text)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), port)
	}
	o := upstream.Options{Name: text, Scheme: scheme, DialTimeout: 5 * time.Second, HeaderTimeout: time.Duration(r.ProxyTimeout) * time.Millisecond}
	if scheme == "https" {
		// "secure: false" is for a target that is dialled by another name than that of its
		// certificate.
		o.TLSConfig = &tls.Config{ServerName: u.Hostname(), InsecureSkipVerify: r.Secure != nil && !*r.Secure}
	}
	t := &target{url: u}
	if t.group, err = upstream.New(o, upstream.Target{Addr: addr}); err != nil {
		return nil, err
	}
	d.groups = append(d.groups, t.group)
	protocols := []string{}
	if r.WS {
		protocols = append(protocols, "websocket")
	}
	upgrades, err := wsupgrade.New(wsupgrade.Options{Protocols: protocols, Dial: t.group.Dial, TLSConfig: o.TLSConfig})
	if err != nil {
		return nil, err
	}
	var transport http.RoundTripper // nil: the group's
	if r.FollowRedirects.follow {
		f := newFollower(r, u, t.group.Transport(), o.TLSConfig)
		d.followers = append(d.followers, f)
		transport = f
	}
	t.proxy, err = proxy.New(proxy.Options{
		Upstream:       t.group,
		Transport:      transport,
		Upgrades:       upgrades,
		ReadTimeout:    time.Duration(r.Timeout) * time.Millisecond,
		WriteTimeout:   time.Duration(r.Timeout) * time.Millisecond,
		Rewrite:        func(out *proxy.Outbound) { r.rewrite(out, t) },
		ModifyResponse: func(a *proxy.Response) { r.modifyResponse(a, t) },
		ErrorHandler:   explain,
	})
	return t, err
}

// name is the target as the developer wrote it.
func (t *target) name() string { return strings.TrimSuffix(t.url.String(), "/") }
