package main

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vulcand/oxy/v2/forward"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/klog/v2"

	"github.com/culvert-go/culvert/filters"
	culvertproxy "github.com/culvert-go/culvert/proxy"
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
	bareName      = "net/http, no proxy"
	memoryName    = "server, no proxy"
	ourName       = "culvert"
	onNetHTTPName = "culvert on net/http"
	tunedName     = "ReverseProxy, tuned"
	relayName     = "bytes, no HTTP"
	fastName      = "fasthttp"
)

// peers are who is compared. A new one is a line here, and its handler in
// handlers if it is an http.Handler.
func peers() []peer {
	return []peer{
		{name: bareName, start: startSelf},
		{name: memoryName, start: startSelf},
		{name: ourName, start: startSelf},
		{name: onNetHTTPName, start: startSelf},
		{name: tunedName, start: startSelf},
		{name: "ReverseProxy", start: startSelf},
		{name: "oxy", start: startSelf},
		{name: fastName, start: startSelf},
		{name: "apimachinery", start: startSelf},
		{name: relayName, start: startSelf},
		{name: "haproxy", start: startHAProxy, missing: notInstalled("haproxy")},
		{name: "nginx", start: startNginx, missing: notInstalled("nginx")},
	}
}

// securePeers are who is compared over TLS.
func securePeers() []peer {
	return []peer{
		{name: ourName + secureSuffix, start: startSelf},
		{name: tunedName + secureSuffix, start: startSelf},
		{name: "nginx" + secureSuffix, start: startNginx, missing: notInstalled("nginx")},
	}
}

// named are those whose names contain one of the parts, all if there is none.
func named(all []peer, parts string) []peer {
	return slices.DeleteFunc(all, func(p peer) bool {
		return !slices.ContainsFunc(strings.Split(parts, ";"), func(part string) bool { return strings.Contains(p.name, part) })
	})
}

// present are those who can run here; who can't is named.
func present(out io.Writer, all []peer) (here []peer) {
	for _, p := range all {
		if p.missing != "" {
			fmt.Fprintf(out, "%s is left out: %s\n", p.name, p.missing)
			continue
		}
		here = append(here, p)
	}
	return here
}

// handlers make what a process of this program serves in front of target.
var handlers = map[string]func(target string) (http.Handler, error){
	bareName:       respond,
	memoryName:     respond,
	ourName:        culvert,
	onNetHTTPName:  culvert,
	tunedName:      tunedReverseProxy,
	"ReverseProxy": reverseProxy,
	"oxy":          oxy,
	"apimachinery": apimachinery,
	loopsName:      tunnels(false, false),
	portableName:   tunnels(true, false),
	blockingName:   tunnels(true, true),
}

// ownServer are those of handlers that package server serves; net/http's server has the others.
var ownServer = map[string]bool{memoryName: true, ourName: true, loopsName: true, portableName: true, blockingName: true}

// respond returns a handler that reads the request's body and responds with as many bytes as
// the path says.
func respond(string) (http.Handler, error) {
	content := []byte(strings.Repeat("culvert\n", 1<<17))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || n < 0 || n > len(content) {
			http.Error(w, "how much?", http.StatusBadRequest)
			return
		}
		if r.ContentLength != 0 {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		w.Header()["Content-Type"] = []string{"text/plain"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(n)}
		_, _ = w.Write(content[:n])
	}), nil
}

func culvert(target string) (http.Handler, error) {
	upstream, err := upstream.New(upstream.Options{Name: "origin"}, upstream.Target{Addr: target})
	if err != nil {
		return nil, err
	}
	p, err := culvertproxy.New(culvertproxy.Options{Upstream: upstream})
	if err != nil {
		return nil, err
	}
	return filters.NewChain().Then(p), nil
}

// reverseProxy is the standard library's as its documentation has it.
func reverseProxy(target string) (http.Handler, error) {
	return httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target}), nil
}

// tunedReverseProxy is the standard library's, tuned by an expert:
// idle connections for the load, no compression, buffers that are used again, and
// a bound on a target that never responds, as every other peer here has one.
func tunedReverseProxy(target string) (http.Handler, error) {
	to := &url.URL{Scheme: "http", Host: target}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
		},
		Transport: &http.Transport{
			MaxIdleConns:          1024,
			MaxIdleConnsPerHost:   1024,
			IdleConnTimeout:       time.Minute,
			ResponseHeaderTimeout: time.Minute,
			DisableCompression:    true,
		},
		BufferPool: &buffers{},
	}, nil
}

// oxy is vulcand's forwarder, which older Traefik was made of.
func oxy(target string) (http.Handler, error) {
	p := forward.New(true)
	to := &url.URL{Scheme: "http", Host: target}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
		p.ServeHTTP(w, r)
	}), nil
}

// apimachinery is what kube-apiserver and kubectl proxy forward with.
func apimachinery(target string) (http.Handler, error) {
	if err := silenceKlog(); err != nil { // it logs each tunnel's end
		return nil, err
	}
	transport := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, IdleConnTimeout: time.Minute, DisableCompression: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := &url.URL{Scheme: "http", Host: target, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
		proxy.NewUpgradeAwareHandler(to, transport, false, false, refuser{}).ServeHTTP(w, r)
	}), nil
}

func silenceKlog() error {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	return flags.Set("stderrthreshold", "FATAL")
}

type refuser struct{}

func (refuser) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusBadGateway)
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
