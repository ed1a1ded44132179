package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/culvert-go/culvert/cachectl"
)

// explanation is what caches do with a response.
type explanation struct {
	Status   int         `json:"status"`
	Header   http.Header `json:"header"`
	Verdicts []verdict   `json:"verdicts"`
}

type verdict struct {
	Cache   string `json:"cache"`
	Reuse   bool   `json:"reuse"`
	For     string `json:"for,omitempty"`
	Because string `json:"because"`
}

// explain responds with what caches do with the response of h to a GET of ?path=.
func explain(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target, err := url.ParseRequestURI(r.FormValue("path"))
		if err != nil || !strings.HasPrefix(r.FormValue("path"), "/") {
			http.Error(w, "path is the path of a page", http.StatusBadRequest)
			return
		}
		page := r.Clone(r.Context())
		page.Method, page.URL, page.RequestURI, page.Header = http.MethodGet, target, target.RequestURI(), http.Header{}
		if host := r.FormValue("host"); host != "" {
			page.Host = host
		}
		seen := &header{fields: http.Header{}}
		h.ServeHTTP(seen, page)
		response := &cachectl.Response{Request: page, Status: seen.status, Header: seen.fields}
		result := explanation{Status: seen.status, Header: seen.fields, Verdicts: []verdict{}}
		for _, v := range cachectl.Explain(response) {
			lasts := ""
			if v.Reuse {
				if lasts = v.For.Round(time.Second).String(); v.For == cachectl.Forever {
					lasts = "forever"
				}
			}
			result.Verdicts = append(result.Verdicts, verdict{v.Cache, v.Reuse, lasts, v.Because})
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(result) // an error: the operator has left
	})
}

// header is a http.ResponseWriter that keeps the header of the final response.
type header struct {
	fields http.Header
	status int
}

func (h *header) Header() http.Header { return h.fields }

func (h *header) WriteHeader(status int) {
	if h.status == 0 && status >= 200 {
		h.status, h.fields = status, h.fields.Clone()
	}
}

func (h *header) Write(p []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return len(p), nil
}
