package view_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/watchcodec/view"
)

// A request that announces a body gets its response even if the body is not sent, and a watch whose
// body is sent lasts.
func TestRequestsWithBodies(t *testing.T) {
	for name, test := range map[string]struct{ path, body string }{
		"list":          {collectionPath, ""},
		"get":           {strings.Replace(collectionPath, "things", "namespaces/n/things/a", 1), ""},
		"watch":         {collectionPath + "?watch=1", ""},
		"watch, a body": {collectionPath + "?watch=1", "0123456789"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leaktest.Check(t)
				server, p := aThing(t)
				views := newViews(t, view.Options{}, p)
				defer views.Close()
				client, near := net.Pipe()
				s := wiretest.Server(&http.Server{Handler: views.Filter(server), ErrorLog: wiretest.Quiet()})
				go func() { _ = s.Serve(wiretest.OneConn(near)) }()
				defer s.Close()
				defer client.Close()
				_ = client.SetDeadline(time.Now().Add(time.Hour))
				go func() {
					_, _ = io.WriteString(client, "GET "+test.path+" HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n"+test.body)
				}()
				start := time.Now()
				response, err := http.ReadResponse(bufio.NewReader(client), nil)
				if took := time.Since(start); err != nil || response.StatusCode != http.StatusOK || took > time.Minute {
					t.Fatalf("after %v: %v", took, err)
				}
				if test.body == "" {
					return
				}
				time.Sleep(time.Minute)
				server.Set(thing("late", [3]string{"sky", "", "1"}))
				events := bufio.NewScanner(response.Body)
				for events.Scan() && !strings.Contains(events.Text(), `"late"`) {
				}
				if !strings.Contains(events.Text(), `"late"`) {
					t.Errorf("the watch ended: %v", events.Err())
				}
			})
		})
	}
}
