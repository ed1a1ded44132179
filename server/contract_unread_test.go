package server_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A client that leaves ends the context of a handler that has left a short rest of the body unread, and has closed it or
// sent the beginning of the response.
func TestContractClientLeavesBehindUnreadBody(t *testing.T) {
	settle := map[string]http.HandlerFunc{
		"Close":       func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() },
		"Flush":       func(w http.ResponseWriter, _ *http.Request) { flush(w) },
		"large write": func(w http.ResponseWriter, _ *http.Request) { write(strings.Repeat("much ", 20_000))(w) },
		"read a byte, Close": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = r.Body.Read(make([]byte, 1))
			_ = r.Body.Close()
		},
	}
	requests := map[string][]string{
		"length":           {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"},
		"length in pieces": {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe", "l", "lo"},
		"chunks":           {chunked + "5\r\nhello\r\n0\r\nA: b\r\n\r\n"},
		"chunks in pieces": {chunked + "5\r\nhe", "llo\r\n0\r\nA:", " b\r\n\r\n"},
	}
	waits := map[string]func(r *http.Request){
		"Done": func(r *http.Request) { <-r.Context().Done() },
		"Err": func(r *http.Request) {
			for r.Context().Err() == nil {
				time.Sleep(time.Second)
			}
		},
	}
	onServersInBubble(t, func(t *testing.T, k kind) {
		for how, settle := range settle {
			for what, pieces := range requests {
				for by, wait := range waits {
					for _, early := range []bool{false, true} { // the context is used before
						var ended atomic.Bool
						c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							if early {
								_ = r.Context().Done()
							}
							settle(w, r)
							wait(r)
							ended.Store(true)
						})})
						for _, piece := range pieces {
							c.send(piece)
						}
						if c.after(time.Minute); ended.Load() {
							t.Errorf("%s of %s, %s, early: %v: ended while the client was there", how, what, by, early)
						}
						c.Close()
						time.Sleep(time.Minute)
						if synctest.Wait(); !ended.Load() {
							t.Fatalf("%s of %s, %s, early: %v: not ended", how, what, by, early)
						}
					}
				}
			}
		}
	})
}
