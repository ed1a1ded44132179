package engine

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/proxy"
)

// transportKey tells transports apart: connections are shared by all locations
// whose connections are alike.
type transportKey struct {
	scheme  string
	connect time.Duration
	read    time.Duration
}

// transport returns the transport for a location's settings.
func (e *Engine) transport(scheme string, s proxySettings) http.RoundTripper {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := transportKey{scheme, s.connectTimeout, s.readTimeout}
	t, ok := e.transports[key]
	if !ok {
		t = &http.Transport{
			DialContext:            dialer(s.connectTimeout),
			TLSClientConfig:        upstreamTLS(),
			TLSHandshakeTimeout:    s.connectTimeout,
			DisableCompression:     true,
			MaxIdleConnsPerHost:    128,
			IdleConnTimeout:        time.Minute,
			ExpectContinueTimeout:  time.Second,
			ResponseHeaderTimeout:  s.readTimeout,
			MaxResponseHeaderBytes: 64 << 10,
		}
		e.transports[key] = t
	}
	return &upstreamTransport{t}
}

func dialer(timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext
}

// upstreamTransport keeps the head of an upstream's answer for $upstream_http_.
type upstreamTransport struct{ next http.RoundTripper }

func (t *upstreamTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	exchangeOf(r.Context()).UpstreamHeader = resp.Header
	return resp, nil
}

// logProxy logs why an upstream gave no whole answer.
func (x *exchange) logProxy(p *passRule, err *proxy.Error) {
	upstream := ""
	if err.Target != "" {
		upstream = "http://" + err.Target + x.RequestURI
	}
	if err.Kind == proxy.ClientGone {
		x.logAt(levelInfo, "client prematurely closed connection", upstream)
		return
	}
	x.logAt(levelError, err.Error()+" while reading response header from upstream", upstream)
}
