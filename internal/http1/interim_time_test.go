package http1_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// The time that the hook takes for an interim response is not the target's, of a request with a body either: whether that
// has ended when the hook is called, or ends meanwhile.
func TestHeaderTimeoutBehindABody(t *testing.T) {
	const timeout, hook, hint = 10 * time.Second, 8 * time.Second, "HTTP/1.1 103 Early Hints\r\n\r\n"
	for name, test := range map[string]struct {
		bodyEnds time.Duration // behind the request's header
		interim  time.Duration // is sent, behind the header
		final    time.Duration // is sent, behind the interim response
		status   int
	}{
		"has ended":                {0, time.Second, hook + 3*time.Second, 200},
		"has ended, and too late":  {0, time.Second, hook + 13*time.Second, 0},
		"ends meanwhile":           {time.Second, 0, hook + 9*time.Second, 200},
		"ends meanwhile, too late": {time.Second, 0, hook + 14*time.Second, 0},
		"ends behind it":           {hook + time.Minute, 0, hook + time.Minute + 9*time.Second, 200},
		"ends behind it, too late": {hook + time.Minute, 0, hook + time.Minute + 14*time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScripted(t, http1.Options{HeaderTimeout: timeout}, func(_ int32, p *wiretest.Peer) {
					_ = p.SetDeadline(time.Time{})
					p.Header()
					go func() { _, _ = io.Copy(io.Discard, p.Conn) }()
					time.Sleep(test.interim)
					_, _ = io.WriteString(p.Conn, hint)
					time.Sleep(test.final)
					_, _ = io.WriteString(p.Conn, ok)
				})
				reads, body := io.Pipe()
				go func() {
					time.Sleep(test.bodyEnds)
					body.Close()
				}()
				hooks := journal{interim: func(int, http.Header) { time.Sleep(hook) }}
				status, _, err := s.send(&http1.Call{Request: request(t.Context(), "POST", reads, -1), Hooks: &hooks})
				if status != test.status {
					t.Errorf("status %d, %v", status, err)
				}
			})
		})
	}
}

// A target that sends one interim response soon after the other has no more time for the final one, and the end of the
// context ends the call.
func TestHastyInterimResponses(t *testing.T) {
	for name, own := range map[string]bool{"HeaderTimeout": true, "the context": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const timeout = 100 * time.Millisecond
				o, ctx := http1.Options{}, t.Context()
				if own {
					o.HeaderTimeout = timeout
				} else {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, timeout)
					defer cancel()
				}
				s := newScripted(t, o, func(_ int32, p *wiretest.Peer) {
					p.Header()
					for {
						time.Sleep(5 * time.Millisecond)
						if _, err := io.WriteString(p.Conn, "HTTP/1.1 102\n\n"); err != nil {
							return
						}
					}
				})
				begun := time.Now()
				_, _, err := s.send(&http1.Call{Request: text(ctx, "GET", "")})
				if took := time.Since(begun); took > 2*timeout || errors.Is(err, http1.ErrHeaderTooLarge) {
					t.Errorf("behind %v: %v", took, err)
				}
			})
		})
	}
}
