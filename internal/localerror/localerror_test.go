package localerror_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/localerror"
)

// The gateway's statuses have the codes that gRPC has for them.
func TestCodes(t *testing.T) {
	for status, want := range map[int]string{400: "13", 401: "16", 403: "7", 404: "12", 405: "12", 408: "4", 413: "8", 415: "12",
		418: "2", 426: "12", 429: "8", 431: "8", 500: "13", 501: "12", 502: "14", 503: "14", 504: "4"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Content-Type", "application/grpc")
		w.Header().Set("Content-Length", "3")
		w.Header().Set("Trailer", "a")
		localerror.Write(w, r, status)
		h := w.Header()
		if w.Code != 200 || h.Get("Grpc-Status") != want || h.Get("Grpc-Message") != http.StatusText(status) || w.Body.Len() != 0 {
			t.Errorf("%d: %d, %v, %q", status, w.Code, h, w.Body)
		}
		if len(h) != 3 {
			t.Errorf("%d: header %v", status, h)
		}
	}
	if w := httptest.NewRecorder(); true {
		localerror.Write(w, httptest.NewRequest("POST", "/", nil), 504)
		if w.Code != 504 || w.Body.String() != "Gateway Timeout\n" || w.Header()["Grpc-Status"] != nil {
			t.Errorf("%d, %v, %q", w.Code, w.Header(), w.Body)
		}
	}
}

// Only calls of gRPC have its responses, with the type of the protocol, without that of a codec.
func TestTypes(t *testing.T) {
	for media, want := range map[string]string{
		"application/grpc":                "application/grpc",
		"application/grpc+proto":          "application/grpc",
		"Application/GRPC; charset=utf-8": "application/grpc",
		"application/grpc-web":            "application/grpc-web",
		"application/grpc-web+proto":      "application/grpc-web",
		"application/grpc-Web-Text+proto": "application/grpc-web-text",
		"application/grpcs":               "",
		"application/grpc-webs":           "",
		"application/grpc-json":           "",
		"application/grp":                 "",
		"text/html, application/grpc":     "",
		"":                                "",
	} {
		r := httptest.NewRequest("POST", "/", nil)
		if media != "" {
			r.Header.Set("Content-Type", media)
		}
		if localerror.IsGRPC(r) != (want != "") {
			t.Errorf("%s: gRPC %v", media, want == "")
		}
		w := httptest.NewRecorder()
		localerror.WriteError(w, r, &culvert.Error{Kind: culvert.Busy, RetryAfter: time.Second + 1})
		if got := w.Header().Get("Content-Type"); want != "" && got != want || w.Header().Get("Retry-After") != "2" {
			t.Errorf("%s: %v", media, w.Header())
		}
	}
	for kind, want := range map[culvert.ErrorKind]string{culvert.Busy: "1", culvert.NoTarget: "1", culvert.Forbidden: ""} { // by default
		w := httptest.NewRecorder()
		localerror.WriteError(w, nil, &culvert.Error{Kind: kind})
		if got := w.Header().Get("Retry-After"); got != want {
			t.Errorf("%v: Retry-After %q, want %q", kind, got, want)
		}
	}
	r := httptest.NewRequest("POST", "/", nil)
	r.Header["Content-Type"] = []string{"application/grpc", "text/html"}
	if localerror.IsGRPC(r) || localerror.IsGRPC(nil) {
		t.Error("two types, or no request, are gRPC")
	}
}
