package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"
)

// beforehand is the gateway over httputil.ReverseProxy.
func beforehand(c config) (*gateway, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.DialContext = (&net.Dialer{Timeout: 2 * time.Second}).DialContext
	transport.TLSClientConfig = &tls.Config{RootCAs: c.roots}
	transport.ForceAttemptHTTP2 = false
	transport.MaxIdleConnsPerHost = 64
	transport.ResponseHeaderTimeout = c.wait
	app := &httputil.ReverseProxy{
		Transport: &signing{next: transport, secret: c.secret},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, "/app")
			r.Out.URL.RawPath = strings.TrimPrefix(r.In.URL.RawPath, "/app")
			r.SetURL(c.app)
			r.Out.Host = r.In.Host
			r.SetXForwarded()
			r.Out.Header.Set("X-Tenant", c.tenant)
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Server")
			if r.Header.Get("X-Internal") != "" {
				return errInternal
			}
			return addBanner(r)
		},
		FlushInterval: -1,
		BufferPool:    &buffers{},
		ErrorLog:      c.log,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			c.log.Printf("%s: %v", r.URL.Path, err)
			var timeout net.Error
			switch {
			case errors.Is(err, context.Canceled):
				return // the client has left
			case errors.As(err, &timeout) && timeout.Timeout():
				writeError(w, http.StatusGatewayTimeout)
			case errors.Is(err, errInternal):
				writeError(w, http.StatusForbidden)
			default:
				writeError(w, http.StatusBadGateway)
			}
		},
	}
	pages := httputil.NewSingleHostReverseProxy(c.pages) // a Director, as in 2015
	pages.Transport = transport
	pages.ErrorLog = c.log
	mux := http.NewServeMux()
	mux.Handle("/app/", app)
	mux.Handle("/", pages)
	return &gateway{Handler: mux, close: transport.CloseIdleConnections}, nil
}

var errInternal = errors.New("the response is for internal use")

// signing signs what is sent to the application.
type signing struct {
	next   http.RoundTripper
	secret []byte
}

func (s *signing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Signature", sign(s.secret, r))
	return s.next.RoundTrip(r)
}

// sign returns the signature of a request's method and path.
func sign(secret []byte, r *http.Request) string {
	mac := hmac.New(sha256.New, secret)
	io.WriteString(mac, r.Method+" "+r.URL.EscapedPath())
	return hex.EncodeToString(mac.Sum(nil))
}

const banner = "<p>Maintenance on Sunday</p>"

// addBanner puts the banner into an HTML page.
func addBanner(r *http.Response) error {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
		return nil
	}
	content, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return err
	}
	content = bytes.Replace(content, []byte("<body>"), []byte("<body>"+banner), 1)
	r.Body = io.NopCloser(bytes.NewReader(content))
	r.ContentLength = int64(len(content))
	r.Header.Set("Content-Length", strconv.Itoa(len(content)))
	return nil
}

func writeError(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, `{"error":`+strconv.Quote(http.StatusText(status))+`}`)
}

// buffers is a httputil.BufferPool.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }
