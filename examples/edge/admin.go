package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/culvert-go/culvert/filters/topology"
	"github.com/culvert-go/culvert/watchcodec"
	"github.com/culvert-go/culvert/watchcodec/source"
)

// admin serves the pages for operators.
func (g *gateway) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { sendPage(w, []byte(index)) })
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", g.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(g.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/topology", g.explain)
	mux.Handle("/status", g.status)
	return mux
}

// ready reports whether nodes and services are known: before that no endpoints are shown.
func (g *gateway) ready(w http.ResponseWriter, _ *http.Request) {
	switch err := g.inputs.Err(); {
	case !g.inputs.Synced() && err != nil:
		http.Error(w, "nodes and services are not known yet: "+err.Error(), http.StatusServiceUnavailable)
	case !g.inputs.Synced():
		http.Error(w, "nodes and services are not known yet", http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ok")
	}
}

//go:embed index.html
var index string

//go:embed topology.html
var page string

var pageTemplate = template.Must(template.New("topology").Parse(page))

// explanation is the content of the debug page.
type explanation struct {
	Node, Policy, Query string
	Labels              map[string]string
	Known               bool // the node
	Service             topology.Service
	Endpoints           []topology.Explained
	Kept                int
	Error               string
}

// explain shows which endpoints of a service the node sees, and why.
func (g *gateway) explain(w http.ResponseWriter, r *http.Request) {
	e := explanation{Node: g.node, Policy: g.policy.Name, Query: r.FormValue("service")}
	e.Labels, e.Known = g.inputs.Labels(g.node)
	if namespace, name, ok := strings.Cut(e.Query, "/"); ok {
		e.Service, _ = g.inputs.Service(namespace, name)
		var err error
		if e.Endpoints, err = g.endpointsOf(r, namespace, name); err != nil {
			e.Error = err.Error()
		}
	} else if e.Query != "" {
		e.Error = "want namespace/name"
	}
	for _, endpoint := range e.Endpoints {
		if endpoint.Decision.Keep {
			e.Kept++
		}
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, e); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	sendPage(w, b.Bytes())
}

func sendPage(w http.ResponseWriter, html []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'")
	_, _ = w.Write(html)
}

// endpointsOf requests a service's slices from the API server, unfiltered.
func (g *gateway) endpointsOf(r *http.Request, namespace, name string) ([]topology.Explained, error) {
	target := "/apis/discovery.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/endpointslices?labelSelector=" + url.QueryEscape("kubernetes.io/service-name="+name)
	request, err := http.NewRequest(http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	var objects []*watchcodec.Object
	_, _, err = source.List(r.Context(), g.own, request, func(o *watchcodec.Object) error {
		kept := new(watchcodec.Object)
		objects = append(objects, kept)
		return kept.Parse(o.Format(), string(o.APIVersion()), string(o.Kind()), o.AppendRaw(nil))
	})
	if err != nil {
		return nil, err
	}
	return g.filter.Explain(objects), nil
}
