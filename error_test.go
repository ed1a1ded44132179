package culvert_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/culvert-go/culvert"
)

func TestKinds(t *testing.T) {
	tests := []struct {
		kind       culvert.ErrorKind
		text       string
		status     int
		clientSide bool
		targetSide bool
	}{
		{culvert.Unknown, "unknown error", 502, false, true},
		{culvert.ClientGone, "client gone", 499, true, false},
		{culvert.BadRequest, "bad request", 400, true, false},
		{culvert.Forbidden, "forbidden", 403, true, false},
		{culvert.UpgradeRequired, "upgrade required", 426, true, false},
		{culvert.Unsupported, "not implemented", 501, true, false},
		{culvert.BodyTooLarge, "request body too large", 413, true, false},
		{culvert.NoTarget, "no target available", 503, false, true},
		{culvert.DialFailed, "dial failed", 502, false, true},
		{culvert.HeaderInvalid, "invalid response header", 502, false, true},
		{culvert.HandshakeFailed, "invalid upgrade response", 502, false, true},
		{culvert.Timeout, "timeout", 504, false, true},
		{culvert.BodyBroken, "response body broken", 502, false, true},
		{culvert.Internal, "internal error", 500, false, false},
		{culvert.ErrorKind(99), "kind 99", 502, false, true},
		{culvert.ErrorKind(-1), "kind -1", 502, false, true},
	}
	for _, test := range tests {
		e := &culvert.Error{Kind: test.kind}
		if e.Error() != test.text || e.Status() != test.status || e.ClientSide() != test.clientSide || e.TargetSide() != test.targetSide {
			t.Errorf("%d: %q %d %v %v", test.kind, e.Error(), e.Status(), e.ClientSide(), e.TargetSide())
		}
	}
}

func TestError(t *testing.T) {
	e := &culvert.Error{Kind: culvert.DialFailed, Target: "127.0.0.1:80", Err: io.EOF}
	if want := "dial failed: 127.0.0.1:80: EOF"; e.Error() != want {
		t.Errorf("%q, want %q", e.Error(), want)
	}
	wrapped := fmt.Errorf("outer: %w", e)
	var found *culvert.Error
	if !errors.As(wrapped, &found) || found != e || !errors.Is(wrapped, io.EOF) {
		t.Errorf("neither the error nor its cause is found in %v", wrapped)
	}
}
