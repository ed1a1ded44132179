package engine_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A response leads to another request, which has its variables, and the client sees nothing of it.
func TestPostAction(t *testing.T) {
	seen := make(chan string, 1)
	counter := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.RequestURI + " " + r.Header.Get("X-Served")
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
		location /last { return 404 content; }`))
	for _, test := range []struct{ method, target, field, want string }{
		{"GET", "/a?b=c", "", "GET /counted 200 7 OK"},
		{"POST", "/a", "", "POST /counted 200 7 OK"},
		{"GET", "/named?b=c", "", "GET /named?b=c 404 7 OK"},
		{"GET", "/off", "", ""},
		{"GET", "/last", "", "GET /counted 404 7 OK"}, // and not that of /off
		{"GET", "/a", "Upgrade: x\r\nConnection: upgrade", "GET /counted 200 7 OK"},
	} {
		got := s.request(test.method, test.target, test.field)
		if got.body != "content" || got.ContentLength != 7 {
			t.Errorf("%s: the client got %q", test.target, got.body)
		}
		if test.want != "" {
			equal(t, test.target, <-seen, test.want)
		}
	}
}

// No client decides that a request is neither copied nor followed by another one: not by an Upgrade, nor by a CONNECT.
func TestUpgradesAreCopied(t *testing.T) {
	seen := make(chan string, 1)
	counter := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.RequestURI + " " + r.Header.Get("Upgrade")
	}))
	defer counter.Close()
	s := serve(t, server(`
		location /after { post_action /count; return 200 content; }
		location /mirrored { mirror /count; proxy_pass http://`+raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")+`; }
		location /unread { mirror /count; mirror_request_body off; proxy_pass http://`+raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")+`; }
		location = /count { internal; proxy_set_header Upgrade $http_upgrade; proxy_pass `+counter.URL+`; }`))
	for _, target := range []string{"/after", "/mirrored", "/unread"} {
		equal(t, target, s.get(target, "Upgrade: x\r\nConnection: upgrade").StatusCode, 200)
		equal(t, target, wiretest.Await(t, seen, "copy of "+target), "GET /count ")
	}
	refuses := serve(t, server(`tunnel_pass; deny all; post_action /refused; location = /refused { proxy_pass `+counter.URL+`; }`))
	client := wiretest.Dial(t, refuses.first)
	client.Send(connectTo("a.test:1"))
	if resp, _ := client.Response("CONNECT"); resp.StatusCode != 403 {
		t.Errorf("CONNECT: %s", resp.Status)
	}
	equal(t, "CONNECT", wiretest.Await(t, seen, "action of CONNECT"), "GET /refused ")
}
