package engine_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A response leads to another request, which has its variables, and the client sees nothing of it.
func TestPostAction(t *testing.T) {
	asked := make(chan string, 1)
	counter := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.RequestURI + " " + r.Header.Get("X-Served")
	}))
	defer counter.Close()
	s := serve(t, server(`
		proxy_set_header X-Served "$status $body_bytes_sent $request_completion";
		post_action /count;
		location / { return 200 content; }
		location = /count { internal; proxy_pass `+counter.URL+`/counted; post_action off; }
		location /named { post_action @count; return 404 content; }
		location @count { proxy_pass `+counter.URL+`; }
		location /off { post_action off; return 200 content; }
		location /last { return 200 content; }`))
	for _, test := range []struct{ method, target, want string }{
		{"GET", "/a?b=c", "GET /counted 200 7 OK"},
		{"POST", "/a", "POST /counted 200 7 OK"},
		{"GET", "/named?b=c", "GET /named?b=c 404 7 OK"},
		{"GET", "/off", ""},
		{"GET", "/last", "GET /counted 200 7 OK"}, // and not that of /off
	} {
		got := s.request(test.method, test.target)
		if got.body != "content" || got.ContentLength != 7 {
			t.Errorf("%s: the client got %q", test.target, got.body)
		}
		if test.want != "" {
			equal(t, test.target, <-asked, test.want)
		}
	}
}
