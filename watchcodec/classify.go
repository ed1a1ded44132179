package watchcodec

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request describes a request to a Kubernetes API server.
type Request struct {
	// Verb is one of get, list, watch, create, update, patch, delete, deletecollection and proxy;
	// "" for a method that the server does not know.
	Verb string
	// APIGroup is "" for the core group.
	APIGroup, APIVersion string
	// Resource is the plural, "pods" for instance. Subresource is "", or "status" for instance.
	Resource, Subresource string
	// Namespace is "" for all namespaces, and for a resource without namespaces. Name is "" unless
	// the request is for one object, by its path or by fieldSelector=metadata.name=…
	Namespace, Name string
	// Options holds the query of a list or a watch. If the query can't be decoded, in which case
	// the server will refuse it, only Options.Watch is set.
	Options internalversion.ListOptions
}

// Classify returns the description of r by the rules of k8s.io/apiserver's
// pkg/endpoints/request/requestinfo.go, the legacy prefix /watch/ included. ok is false if r is not
// for a resource: discovery, /healthz, a path of another server. Classify looks at the method, the
// path and the query only.
func Classify(r *http.Request) (req Request, ok bool) {
	parts := segments(r.URL.Path)
	if len(parts) < 3 || parts[0] != "api" && parts[0] != "apis" {
		return req, false
	}
	grouped := parts[0] == "apis"
	if parts = parts[1:]; grouped {
		if len(parts) < 3 {
			return req, false
		}
		req.APIGroup, parts = parts[0], parts[1:]
	}
	req.APIVersion, parts = parts[0], parts[1:]
	switch first := parts[0]; {
	case first != "watch" && first != "proxy":
		req.Verb = verb(r.Method)
	case len(parts) < 2:
		return req, false
	default:
		req.Verb, parts = first, parts[1:]
	}
	req.locate(parts)
	if req.Name == "" {
		req.setCollectionVerb(r)
	}
	return req, true
}

func segments(p string) []string {
	if p = strings.Trim(p, "/"); p == "" {
		return nil
	}
	return strings.Split(p, "/")
}

func verb(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// locate parses namespaces/NS/resource/name/subresource, or the same without a namespace.
func (req *Request) locate(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		req.Namespace = parts[1]
		// The subresources of a namespace are not resources in it.
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	req.Resource = parts[0]
	if len(parts) > 1 {
		req.Name = parts[1]
	}
	if len(parts) > 2 && req.Verb != "proxy" {
		req.Subresource = parts[2]
	}
}

// setCollectionVerb distinguishes list and watch from get, and deletecollection from delete, where
// the path has no name.
func (req *Request) setCollectionVerb(r *http.Request) {
	switch req.Verb {
	case "delete":
		req.Verb = "deletecollection"
	case "get":
		req.Verb = "list"
		query := r.URL.Query()
		if err := scheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &req.Options); err != nil {
			req.Options = internalversion.ListOptions{Watch: parseBool(query["watch"])}
		}
		if req.Options.Watch {
			req.Verb = "watch"
		}
		if selector := req.Options.FieldSelector; selector != nil {
			if name, ok := selector.RequiresExactMatch("metadata.name"); ok && len(content.IsPathSegmentName(name)) == 0 {
				req.Name = name
			}
		}
	}
}

// parseBool parses a boolean of the query as the server does: everything but 0 and false is true.
func parseBool(values []string) bool {
	return len(values) > 0 && !slices.Contains([]string{"0", "false"}, strings.ToLower(values[0]))
}
