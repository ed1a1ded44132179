package stream

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// A panic of a session ends that session alone, and what its limits have counted.
func TestPanicIsContained(t *testing.T) {
	left, closed := false, false
	var log bytes.Buffer
	good := Server{ErrorLog: slog.New(slog.NewTextHandler(&log, nil)).Handler()}
	limit := func(*Session) (func(), bool) { return func() { left = true }, true }
	for what, server := range map[string]Server{
		"set":      {Set: func(*Session) { panic("broken") }},
		"upstream": {Limit: limit, Content: &Proxy{Upstream: func(context.Context, *Session) (Upstream, bool) { panic("broken") }}},
		"log":      {Limit: limit, Log: func(*Session) { panic("broken") }},
	} {
		log.Reset()
		left, closed = false, false
		server.ErrorLog = good.ErrorLog
		host := &Host{Default: &server}
		p := &Port{Conns: new(vars.Conns), Host: func(netip.Addr) *Host { return host }}
		near, far := net.Pipe()
		p.Accept(&Env{}, far).Serve(context.Background())
		_, err := near.Read(make([]byte, 1))
		closed = err == io.EOF
		if !closed || left != (server.Limit != nil) || !strings.Contains(log.String(), "broken") {
			t.Errorf("%s: closed %t, left %t, log %s", what, closed, left, log.String())
		}
	}
}
