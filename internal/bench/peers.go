package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// peer is one competitor.
type peer struct {
	name    string
	start   func(name, target string) (*process, error)
	missing string // why it can't run here, "" if it can
}

// The peers that the rest of the program knows by name.
const (
	answerName = "net/http, no proxy"
	tunedName  = "ReverseProxy, tuned"
)

// peers are who is compared. A new one is a line here, and its handler in
// handlers if it is one of net/http's.
func peers() []peer {
	return []peer{
		{name: answerName, start: startSelf},
		{name: "culvert", start: startSelf},
		{name: tunedName, start: startSelf},
		{name: "ReverseProxy", start: startSelf},
		{name: "nginx", start: startNginx, missing: notInstalled("nginx")},
	}
}

// handlers make what a process of this program serves in front of target.
var handlers = map[string]func(target string) (http.Handler, error){
	answerName:     answer,
	"culvert":      culvert,
	tunedName:      tunedReverseProxy,
	"ReverseProxy": reverseProxy,
}

// contentSize is the length of what every request is answered with.
const contentSize = 1 << 10

func answer(string) (http.Handler, error) {
	content := []byte(strings.Repeat("culvert\n", contentSize/8))
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"text/plain"}
		_, _ = w.Write(content)
	}), nil
}

func culvert(target string) (http.Handler, error) {
	upstream, err := upstream.New(upstream.Options{Name: "origin"}, upstream.Target{Addr: target})
	if err != nil {
		return nil, err
	}
	p, err := proxy.New(proxy.Options{Upstream: upstream})
	if err != nil {
		return nil, err
	}
	return filters.NewChain().Then(p), nil
}

// reverseProxy is the standard library's as its documentation has it.
func reverseProxy(target string) (http.Handler, error) {
	return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target}), nil
}

// tunedReverseProxy is the standard library's as somebody has it who knows it:
// idle connections for the load, no compression, buffers that are used again.
func tunedReverseProxy(target string) (http.Handler, error) {
	to := &url.URL{Scheme: "http", Host: target}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
		},
		Transport: &http.Transport{
			MaxIdleConns:        1024,
			MaxIdleConnsPerHost: 1024,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true,
		},
		BufferPool: &buffers{},
	}, nil
}

// buffers is httputil's BufferPool.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, 32<<10)
}

func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }

func notInstalled(program string) string {
	if _, err := exec.LookPath(program); err != nil {
		return err.Error()
	}
	return ""
}
