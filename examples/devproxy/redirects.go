package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxRedirects is how many redirects of one request are followed, as in http-proxy-middleware.
const maxRedirects = 21

// redirects are a rule's followRedirects: true for those that lead to the target itself, or a list of the origins
// ("https://host:port") to which others may lead as well.
type redirects struct {
	follow  bool
	origins texts
}

func (f *redirects) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&f.follow)
	}
	f.follow = true
	if err := f.origins.UnmarshalYAML(n); err != nil {
		return err
	}
	for i, text := range f.origins {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return fmt.Errorf("%q is not an origin such as https://host:port", text)
		}
		f.origins[i] = origin(u)
	}
	return nil
}

// origin returns a URL's scheme, host and port.
func origin(u *url.URL) string {
	scheme := map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
	if scheme == "" {
		scheme = u.Scheme
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + strings.ToLower(net.JoinHostPort(u.Hostname(), port))
}

// follower is the transport of a target whose redirects the browser does not see.
type follower struct {
	rule   *compiled
	target *url.URL
	first  http.RoundTripper // for the browser's request
	next   *http.Transport   // for the requests that redirects lead to
}

func newFollower(r *compiled, target *url.URL, first http.RoundTripper, config *tls.Config) *follower {
	if config != nil {
		config = &tls.Config{InsecureSkipVerify: config.InsecureSkipVerify} // its name is the target's
	}
	wait := time.Minute
	if r.ProxyTimeout > 0 {
		wait = time.Duration(r.ProxyTimeout) * time.Millisecond
	}
	return &follower{r, target, first, &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: wait,
		IdleConnTimeout:       wait,
		DisableCompression:    true,
	}}
}

// RoundTrip returns the first response that is no redirect to follow. The cookies that those before it set are in its
// header.
func (f *follower) RoundTrip(out *http.Request) (*http.Response, error) {
	resp, err := f.first.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	var cookies []string
	request := out.Clone(untraced{out.Context()})
	request.URL = f.own(out, out.URL)
	for n := 0; ; n++ {
		next := f.after(out, request, resp)
		if next == nil {
			if cookies != nil {
				resp.Header["Set-Cookie"] = append(cookies, resp.Header["Set-Cookie"]...)
			}
			return resp, nil
		}
		cookies = append(cookies, resp.Header["Set-Cookie"]...)
		if resp.ContentLength >= 0 && resp.ContentLength < 4<<10 {
			_, _ = io.Copy(io.Discard, resp.Body) // so that its connection is kept
		}
		resp.Body.Close()
		if n == maxRedirects {
			return nil, errors.New("it sent more than 21 redirects (followRedirects)")
		}
		if resp, err = f.next.RoundTrip(next); err != nil {
			// %v: the browser's request has been sent, and must not be sent again as after a failed dial.
			return nil, fmt.Errorf("the redirect to %s: %v", next.URL.Redacted(), err)
		}
		request = next
	}
}

// after returns the request that the response to request, which was made for out, redirects to (RFC 9110 section 15.4);
// nil if it is not to be followed.
func (f *follower) after(out, request *http.Request, resp *http.Response) *http.Request {
	method := request.Method
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound:
		if method == http.MethodPost {
			method = http.MethodGet
		}
	case http.StatusSeeOther:
		if method != http.MethodHead {
			method = http.MethodGet
		}
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	location := resp.Header.Get("Location")
	u, err := request.URL.Parse(location)
	if err != nil || location == "" || method == request.Method && request.Body != nil && request.Body != http.NoBody {
		return nil // the body was the target's: the browser may send it again
	}
	next := &http.Request{Method: method, URL: f.own(out, u), Host: u.Host, Header: out.Header.Clone()}
	switch to := origin(next.URL); {
	case to == origin(f.target):
		next.Host = out.Host
	case slices.Contains(f.rule.FollowRedirects.origins, to):
		f.removeSecrets(next.Header)
	default:
		return nil
	}
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Content-Range", "Expect"} {
		next.Header.Del(name)
	}
	return next.WithContext(untraced{out.Context()})
}

// own returns u with the target's address if its host is the one that the target was sent, or the one that was dialled.
func (f *follower) own(out *http.Request, u *url.URL) *url.URL {
	to := *u
	to.User, to.Fragment = nil, ""
	if strings.EqualFold(u.Host, out.Host) || u.Host == out.URL.Host {
		own, _, _ := strings.Cut(origin(f.target), "://")
		if u.Scheme == own {
			to.Host = strings.TrimPrefix(origin(f.target), own+"://")
		}
	}
	return &to
}

func (f *follower) close() { f.next.CloseIdleConnections() }

// removeSecrets removes what is meant for the target alone: credentials, and the rule's own fields.
func (f *follower) removeSecrets(h http.Header) {
	for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
		h.Del(name)
	}
	for _, own := range f.rule.Headers {
		h.Del(own.key)
	}
}

// untraced is a context whose values are hidden: those of the browser's request are about the connection to the target.
type untraced struct{ context.Context }

func (untraced) Value(any) any { return nil }
