package main

import (
	"io"
	"net/http"

	"github.com/valyala/fasthttp"
)

// fast is what Traefik's fast proxy is made of: net/http's server, and fasthttp's client with its
// own connections. It does no more than this work needs.
func fast(target string) (http.Handler, error) {
	client := &fasthttp.HostClient{Addr: target, MaxConns: 1024, NoDefaultUserAgentHeader: true, DisableHeaderNamesNormalizing: true, DisablePathNormalizing: true}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, in := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(out)
		defer fasthttp.ReleaseResponse(in)
		out.Header.SetMethod(r.Method)
		out.SetRequestURI(r.URL.RequestURI())
		out.Header.SetHost(r.Host)
		for name, values := range r.Header {
			for _, value := range values {
				out.Header.Add(name, value)
			}
		}
		out.Header.Set("X-Forwarded-For", r.RemoteAddr)
		if r.ContentLength != 0 {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			out.SetBodyRaw(body)
		}
		if err := client.Do(out, in); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		h := w.Header()
		in.Header.VisitAll(func(name, value []byte) { h.Add(string(name), string(value)) })
		w.WriteHeader(in.StatusCode())
		_, _ = w.Write(in.Body())
	}), nil
}
