package stream

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
	"github.com/culvert-go/culvert/upstream"
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

// A panic ends the session's attempt, too: what counts the sessions of a server does not count it for ever.
func TestPanicEndsAttempt(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	group, err := upstream.New(upstream.Options{}, upstream.Target{Addr: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	for what, panics := range map[string]func(*Proxy){
		"connecting": func(p *Proxy) { p.TLS = func(*Session, string) (*tls.Config, bool) { panic("broken") } },
		"connected":  func(p *Proxy) { p.BufferSize = -1 },
	} {
		begun, ended := 0, 0
		content := &Proxy{ConnectTimeout: time.Minute, Timeout: time.Minute, BufferSize: 1, Upstream: func(context.Context, *Session) (Upstream, bool) {
			return Upstream{Group: group, Observe: func(string) func(Times) {
				begun++
				return func(at Times) {
					if ended++; !at.Failed {
						t.Errorf("%s: %+v", what, at)
					}
				}
			}}, true
		}}
		panics(content)
		host := &Host{Default: &Server{Content: content, ErrorLog: slog.DiscardHandler}}
		p := &Port{Conns: new(vars.Conns), Host: func(netip.Addr) *Host { return host }}
		near, far := net.Pipe()
		p.Accept(&Env{}, far).Serve(t.Context())
		near.Close()
		if begun != 1 || ended != 1 {
			t.Errorf("%s: %d attempts have begun, %d have ended", what, begun, ended)
		}
		for target := range group.Targets() {
			if target.InFlight != 0 {
				t.Errorf("%s: %d in flight", what, target.InFlight)
			}
		}
	}
}
