package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// TestErrorPageBody: the upstream of an error page gets the whole body that the first upstream has had, as nginx's does, and
// nothing that only looks whole.
func TestErrorPageBody(t *testing.T) {
	s := serve(t, server(strings.NewReplacer("OTHER", echo(t), "BROKEN", raw(t, "none"),
		"BUSY", raw(t, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")).Replace(`
		error_page 502 503 = @other;
		location @other { proxy_pass http://OTHER; }
		location /dead { proxy_pass http://127.0.0.1:1; }
		location /broken { proxy_pass http://BROKEN; }
		location /busy { proxy_intercept_errors on; proxy_pass http://BUSY; }
		location /variable { set $page @other; error_page 502 = $page; proxy_pass http://127.0.0.1:1; }
		location /own { proxy_set_body own; proxy_pass http://BROKEN; }
		location /streamed { proxy_request_buffering off; proxy_pass http://BROKEN; }`)))
	for _, test := range []struct {
		path, want string
	}{
		{"/dead", "200 body"},
		{"/broken", "200 body"},
		{"/busy", "200 body"},
		{"/variable", "200 body"},
		{"/own", "200 body"},
		{"/streamed", "200 body"}, // it was received with the header
	} {
		for _, body := range []string{"Content-Length: 4\r\n\r\nbody", "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"} {
			got := s.send("POST " + test.path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + body)
			content := got.body[max(0, strings.LastIndex(got.body, "] ")+1):]
			equal(t, test.path+" with "+body[:8], fmt.Sprintf("%d %s", got.StatusCode, strings.TrimLeft(content, " ")), test.want)
		}
	}
	p := wiretest.Dial(t, s.first)
	defer p.Close()
	p.Send("POST /streamed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbo")
	p.Status(500)
}
