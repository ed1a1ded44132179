package proxy_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// TestRecordsThatAreNotAccepted: a client that accepts no more of a stream of records, each of which is flushed by itself, is
// given up when WriteTimeout is over.
func TestRecordsThatAreNotAccepted(t *testing.T) { onPaths(t, testRecordsThatAreNotAccepted) }
func testRecordsThatAreNotAccepted(t *testing.T, via path) {
	testCertificate()
	for _, front := range fronts {
		t.Run(front, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { recordsNotAccepted(t, via, front) })
		})
	}
}

func recordsNotAccepted(t *testing.T, via path, front string) {
	t.Cleanup(func() { time.Sleep(time.Hour) }) // net/http's server lingers
	records, err := filters.Records(filters.RecordsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("a", 1000) + "\n")
	group := groupAt(t, upstream.Options{Protocol: upstream.HTTP1, DialContext: pipeTo(func(c net.Conn) {
		if _, err := c.Read(make([]byte, 4<<10)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n")
			_, _ = c.Write(bytes.Repeat(line, 1000))
		}
		_, _ = io.Copy(io.Discard, c)
	})}, "192.0.2.1:80")
	var failed failures
	p := newProxy(t, via, proxy.Options{Upstream: group, WriteTimeout: 4 * time.Second, BodyTimeout: 24 * time.Hour, OnError: failed.add})
	ended := make(chan struct{})
	client, url := frontInBubble(t, front, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		records(p).ServeHTTP(w, r)
	}))
	client.Transport.(*http.Transport).HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	select {
	case <-ended:
		failed.only(t)
	case <-time.After(time.Hour):
		t.Error("the handler is held")
	}
}
