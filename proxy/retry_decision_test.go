package proxy

import (
	"fmt"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
)

func TestRepeatsOf(t *testing.T) {
	for method, want := range map[string]repeats{
		"GET": repeatsSafe, "HEAD": repeatsSafe, "OPTIONS": repeatsSafe, "TRACE": repeatsSafe,
		"PUT": repeatsIdempotent, "DELETE": repeatsIdempotent,
		"POST": repeatsNever, "PATCH": repeatsNever, "CONNECT": repeatsNever, "PROPFIND": repeatsNever, "get": repeatsNever,
	} {
		if got := repeatsOf(&http.Request{Method: method}); got != want {
			t.Errorf("%s: %d, want %d", method, got, want)
		}
		for _, key := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
			if got := repeatsOf(&http.Request{Method: method, Header: http.Header{key: {"", "1"}}}); got != repeatsSafe {
				t.Errorf("%s with %s: %d", method, key, got)
			}
			if got := repeatsOf(&http.Request{Method: method, Header: http.Header{key: {""}}}); got != want {
				t.Errorf("%s with an empty %s: %d", method, key, got)
			}
		}
	}
}

func TestRetryDecision(t *testing.T) {
	failed := func(kind culvert.ErrorKind) *culvert.Error { return &culvert.Error{Kind: kind, Err: os.ErrClosed} }
	sent := func(kind culvert.ErrorKind) *culvert.Error {
		return &culvert.Error{Kind: kind, BytesSent: true, Err: os.ErrClosed}
	}
	headerSent := func(kind culvert.ErrorKind) *culvert.Error {
		return &culvert.Error{Kind: kind, BytesSent: true, HeaderSent: true, Err: os.ErrClosed}
	}
	noPort := &culvert.Error{Kind: culvert.Internal, Err: fmt.Errorf("dial: %w", syscall.EADDRNOTAVAIL)}
	noPortAfterBytes := *noPort
	noPortAfterBytes.BytesSent = true

	none := Retry{}
	all := Retry{Errors: true, Timeouts: true, Statuses: []int{502, 503}}
	anyMethod := all
	anyMethod.NonIdempotent = true
	for _, row := range []struct {
		name    string
		retry   Retry
		request repeats
		status  int
		failure *culvert.Error
		stale   bool
		want    decision
	}{
		// Surely not processed: another target, for all methods and policies.
		{"not dialled", none, repeatsNever, 0, failed(culvert.DialFailed), false, tryAnother},
		{"a dial that took too long", none, repeatsNever, 0, failed(culvert.Timeout), false, tryAnother},
		{"refused unprocessed", none, repeatsNever, 0, failed(culvert.HeaderInvalid), false, tryAnotherThenSame},
		{"an upgrade that was not begun", none, repeatsNever, 0, failed(culvert.HandshakeFailed), false, endExchange},
		{"no local port", none, repeatsNever, 0, noPort, false, tryAnother},
		{"no local port, but bytes sent", all, repeatsSafe, 0, &noPortAfterBytes, false, endExchange},
		{"no target", all, repeatsSafe, 0, failed(culvert.NoTarget), false, endExchange},
		{"busy", all, repeatsSafe, 0, failed(culvert.Busy), false, endExchange},

		// Perhaps processed: by policy, and only what may be repeated.
		{"broken off, no policy", none, repeatsSafe, 0, sent(culvert.HeaderInvalid), false, endExchange},
		{"broken off, safe", Retry{Errors: true}, repeatsSafe, 0, sent(culvert.HeaderInvalid), false, tryAnother},
		{"broken off, idempotent", Retry{Errors: true}, repeatsIdempotent, 0, sent(culvert.HeaderInvalid), false, tryAnother},
		{"broken off, neither", Retry{Errors: true}, repeatsNever, 0, sent(culvert.HeaderInvalid), false, endExchange},
		{"broken off, neither, allowed", Retry{Errors: true, NonIdempotent: true}, repeatsNever, 0, sent(culvert.HeaderInvalid), false, tryAnother},
		{"broken off, other policies", Retry{Timeouts: true, Statuses: []int{502}}, repeatsSafe, 0, sent(culvert.HeaderInvalid), false, endExchange},
		{"an invalid 101", Retry{Errors: true}, repeatsSafe, 0, sent(culvert.HandshakeFailed), false, tryAnother},

		// A kept connection that has ended may have been kept too long.
		{"kept, no policy", none, repeatsSafe, 0, sent(culvert.HeaderInvalid), true, endExchange},
		{"kept, safe", Retry{Errors: true}, repeatsSafe, 0, sent(culvert.HeaderInvalid), true, tryAnotherThenSame},
		{"kept, neither", Retry{Errors: true}, repeatsNever, 0, sent(culvert.HeaderInvalid), true, endExchange},
		{"kept, silent", all, repeatsSafe, 0, sent(culvert.Timeout), true, tryAnother},
		{"kept, not dialled", all, repeatsSafe, 0, failed(culvert.DialFailed), true, tryAnother},

		{"silent, no policy", none, repeatsSafe, 0, sent(culvert.Timeout), false, endExchange},
		{"silent, safe", Retry{Timeouts: true}, repeatsSafe, 0, sent(culvert.Timeout), false, tryAnother},
		{"silent, idempotent", Retry{Timeouts: true}, repeatsIdempotent, 0, sent(culvert.Timeout), false, tryAnother},
		{"silent, neither", Retry{Timeouts: true}, repeatsNever, 0, sent(culvert.Timeout), false, endExchange},
		{"silent, other policies", Retry{Errors: true, Statuses: []int{504}}, repeatsSafe, 0, sent(culvert.Timeout), false, endExchange},

		// A response: by its status.
		{"status, no policy", none, repeatsSafe, 503, nil, false, endExchange},
		{"status, safe", all, repeatsSafe, 503, nil, false, tryAnother},
		{"status, idempotent", all, repeatsIdempotent, 502, nil, false, tryAnother},
		{"status, neither", all, repeatsNever, 503, nil, false, endExchange},
		{"status, neither, allowed", anyMethod, repeatsNever, 503, nil, false, tryAnother},
		{"another status", all, repeatsSafe, 500, nil, false, endExchange},

		// Not the target's, or too late.
		{"behind the header", anyMethod, repeatsSafe, 0, headerSent(culvert.BodyBroken), false, endExchange},
		{"silent behind the header", anyMethod, repeatsSafe, 0, headerSent(culvert.Timeout), false, endExchange},
		{"client gone", anyMethod, repeatsSafe, 0, sent(culvert.ClientGone), true, endExchange},
		{"body too slow", anyMethod, repeatsSafe, 0, sent(culvert.BodyTooSlow), false, endExchange},
		{"body too large", anyMethod, repeatsSafe, 0, failed(culvert.BodyTooLarge), false, endExchange},
		{"the gateway's own", anyMethod, repeatsSafe, 0, failed(culvert.Internal), false, endExchange},
	} {
		end := attemptEnd{request: row.request, status: row.status, failure: row.failure, stale: row.stale}
		if got := row.retry.decide(end); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

func TestRetryPermits(t *testing.T) {
	for _, row := range []struct {
		retry    Retry
		attempts int
		elapsed  time.Duration
		want     bool
	}{
		{Retry{}, 1000, time.Hour, true},
		{Retry{Tries: 1}, 1, 0, false},
		{Retry{Tries: 3}, 2, 0, true},
		{Retry{Tries: 3}, 3, 0, false},
		{Retry{Timeout: time.Second}, 1, time.Second - 1, true},
		{Retry{Timeout: time.Second}, 1, time.Second, false},
		{Retry{Tries: 3, Timeout: time.Second}, 2, time.Second, false},
	} {
		if got := row.retry.permits(row.attempts, row.elapsed); got != row.want {
			t.Errorf("%+v after %d attempts and %v: %v", row.retry, row.attempts, row.elapsed, got)
		}
	}
}
