package fault_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/culvert-go/culvert/internal/fault"
)

func TestKinds(t *testing.T) {
	tests := []struct {
		kind       fault.Kind
		text       string
		status     int
		clientSide bool
		targetSide bool
	}{
		{fault.Unknown, "unknown error", 502, false, true},
		{fault.ClientGone, "client gone", 499, true, false},
		{fault.BadRequest, "bad request", 400, true, false},
		{fault.Forbidden, "forbidden", 403, true, false},
		{fault.UpgradeRequired, "upgrade required", 426, true, false},
		{fault.Unsupported, "not implemented", 501, true, false},
		{fault.BodyTooLarge, "request body too large", 413, true, false},
		{fault.NoTarget, "no target available", 503, false, true},
		{fault.Dial, "dial failed", 502, false, true},
		{fault.Head, "invalid response head", 502, false, true},
		{fault.Handshake, "invalid upgrade response", 502, false, true},
		{fault.Timeout, "timeout", 504, false, true},
		{fault.Body, "response body broken", 502, false, true},
		{fault.Internal, "internal error", 500, false, false},
		{fault.Kind(99), "kind 99", 502, false, true},
		{fault.Kind(-1), "kind -1", 502, false, true},
	}
	for _, test := range tests {
		e := &fault.Error{Kind: test.kind}
		if e.Error() != test.text || e.Status() != test.status || e.ClientSide() != test.clientSide || e.TargetSide() != test.targetSide {
			t.Errorf("%d: %q %d %v %v", test.kind, e.Error(), e.Status(), e.ClientSide(), e.TargetSide())
		}
	}
}

func TestError(t *testing.T) {
	e := &fault.Error{Kind: fault.Dial, Target: "127.0.0.1:80", Err: io.EOF}
	if want := "dial failed: 127.0.0.1:80: EOF"; e.Error() != want {
		t.Errorf("%q, want %q", e.Error(), want)
	}
	wrapped := fmt.Errorf("outer: %w", e)
	if fault.As(wrapped) != e || !errors.Is(wrapped, io.EOF) {
		t.Errorf("neither the error nor its cause is found in %v", wrapped)
	}
	if fault.As(nil) != nil || fault.As(io.EOF) != nil {
		t.Error("an error of ours is found where there is none")
	}
}
