package main

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/watchcodec"
)

// authorize refuses what RBAC can't know: requests for the parts of objects that the user does not see, changes of them, and
// commands for users who may run none. next hides objects.
func authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, ok := watchcodec.Classify(r)
		if !ok || !filtered(&req) {
			next.ServeHTTP(w, r)
			return
		}
		switch reason := refusal(next, r, &req); {
		case reason != "":
			refuse(w, r, &req, reason)
		case req.Verb == "list":
			next.ServeHTTP(w, unpaged(r))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refusal returns why a request is refused, "" if it is not.
func refusal(next http.Handler, r *http.Request, req *watchcodec.Request) string {
	switch req.Subresource {
	case "exec", "attach", "portforward", "proxy":
		if !userOf(r.Context()).Exec {
			return "the user may not run commands in pods"
		}
	}
	switch {
	case req.Verb == "deletecollection":
		return "objects are deleted one by one"
	case req.Verb == "create" && req.Subresource == "", req.Verb == "list", req.Verb == "watch", req.Verb == "get" && req.Subresource == "":
		return "" // the filter inside hides what the user does not see
	case !sees(next, r, req):
		return "the user does not see the object"
	}
	return ""
}

// sees reports whether the user sees the object of a request, by requesting it.
func sees(next http.Handler, r *http.Request, req *watchcodec.Request) bool {
	ctx, _ := filters.WithNewResult(r.Context())
	get, err := http.NewRequestWithContext(ctx, http.MethodGet, req.CollectionPath()+"/"+req.Name, nil)
	if err != nil {
		return false
	}
	get.RemoteAddr, get.TLS, get.Host = r.RemoteAddr, r.TLS, r.Host
	get.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	var status statusOnly
	next.ServeHTTP(&status, get)
	return status.code == http.StatusOK
}

// statusOnly is an http.ResponseWriter that keeps the status.
type statusOnly struct {
	header http.Header
	code   int
}

// Header implements http.ResponseWriter.
func (s *statusOnly) Header() http.Header {
	if s.header == nil {
		s.header = http.Header{}
	}
	return s.header
}

// WriteHeader implements http.ResponseWriter.
func (s *statusOnly) WriteHeader(code int) {
	if s.code < 200 {
		s.code = code
	}
}

// Write implements http.ResponseWriter.
func (s *statusOnly) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return len(p), nil
}

// unpaged returns the request for a whole list: the token of a page names objects that the user may not see.
func unpaged(r *http.Request) *http.Request {
	query := r.URL.Query()
	if !query.Has("limit") && !query.Has("continue") {
		return r
	}
	query.Del("limit")
	query.Del("continue")
	r = r.Clone(r.Context())
	r.URL.RawQuery = query.Encode()
	return r
}

func refuse(w http.ResponseWriter, r *http.Request, req *watchcodec.Request, reason string) {
	if result := filters.ResultFrom(r.Context()); result != nil {
		result.Err = &culvert.Error{Kind: culvert.Forbidden, Err: fmt.Errorf("%s %s: %s", req.Verb, req.Resource, reason)}
	}
	watchcodec.WriteStatus(w, watchcodec.NewFailure(http.StatusForbidden, metav1.StatusReasonForbidden, reason))
}
