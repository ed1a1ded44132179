package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// gateway is a proxy behind a net/http server.
type gateway struct {
	name          string
	plain, secure string // addresses: HTTP/1.1 and h2c; HTTP/1.1 and h2
	group         *upstream.Group
}

// setup says how a gateway is made.
type setup struct {
	name     string
	targets  []upstream.Target
	upstream upstream.Options
	proxy    proxy.Options
	filters  []culvert.Filter
	around   culvert.Filter // outside of the chain; nil: nothing
}

// gateways starts a gateway for each path that an exchange can take: the proxy's own and
// http.Transport's, which is the only one to targets that speak HTTP/2.
func (r *run) gateways(s setup) []*gateway {
	list := []*gateway{r.gateway(s, " over http.Transport", func(t http.RoundTripper) http.RoundTripper { return standard{t} })}
	if s.upstream.Protocol == upstream.HTTP1 {
		list = append(list, r.gateway(s, "", func(http.RoundTripper) http.RoundTripper { return nil }))
	}
	return list
}

// standard hides that a transport is a group's own.
type standard struct{ http.RoundTripper }

func (r *run) gateway(s setup, path string, transport func(http.RoundTripper) http.RoundTripper) *gateway {
	group := must(upstream.New(s.upstream, s.targets...))
	o := s.proxy
	o.Upstream = group
	o.Transport = transport(group.Transport())
	handler := filters.NewChain(s.filters...).Then(must(proxy.New(o)))
	if s.around != nil {
		handler = s.around(handler)
	}
	r.atEnd(func() { _ = group.Close() })
	g := &gateway{name: s.name + path, group: group}
	g.plain, g.secure = r.serve(handler)
	return g
}

// addresses are those of targets with the defaults.
func addresses(list ...string) (targets []upstream.Target) {
	for _, addr := range list {
		targets = append(targets, upstream.Target{Addr: addr})
	}
	return targets
}

// serve serves h until the run ends. A handler that outlives its clients by far is a broken promise.
func (r *run) serve(h http.Handler) (plain, secure string) {
	var handlers atomic.Int64
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Protocols: protocols,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate()}},
		ErrorLog:  log.New(errorLog{r}, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handlers.Add(1)
			defer handlers.Add(-1)
			h.ServeHTTP(w, r)
		}),
	}
	listeners := [2]net.Listener{listen(), listen()}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listeners[0]) })
	serving.Go(func() { _ = server.ServeTLS(listeners[1], "", "") })
	r.atEnd(func() {
		_ = server.Close()
		serving.Wait()
		for end := time.Now().Add(patience); handlers.Load() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				r.broke("a handler returns when its client has gone", "%d still run after %v", handlers.Load(), patience)
				break
			}
		}
	})
	return listeners[0].Addr().String(), listeners[1].Addr().String()
}

// errorLog finds broken promises in what net/http's server logs.
type errorLog struct{ r *run }

func (l errorLog) Write(line []byte) (int, error) {
	switch s := string(line); {
	case strings.Contains(s, "panic"):
		l.r.broke("no handler panics", "%s", s)
	case strings.Contains(s, "superfluous"):
		l.r.broke("one final header for each response", "%s", s)
	}
	return len(line), nil
}

func listen() net.Listener { return must(net.Listen("tcp", "127.0.0.1:0")) }

// certificate is one that no client looks at.
var certificate = sync.OnceValue(func() tls.Certificate {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{"gateway.test"}}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// must is for what fails only where the program is wrong, or the machine has no descriptors left.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
