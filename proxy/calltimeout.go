package proxy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/localerror"
)

// errCallOverdue is the cause of a gRPC call's failure whose target has reset it, since the call's time is over.
var errCallOverdue = errors.New("the target ended the call, whose grpc-timeout has passed")

// leaveOverdue reports whether err is of a gRPC call that its target has ended since the time that the client gives it
// (grpc-timeout) is over: gRPC's servers reset the stream with CANCEL then. That is the client's doing, so it does not count
// for the target, and another attempt would be too late. If there is no response yet, err becomes a Timeout, whose
// grpc-status is that of a deadline.
func (f *forwarding) leaveOverdue(err *culvert.Error) bool {
	if !err.TargetSide() || !cancelledByTarget(err.Err) || !localerror.IsGRPC(f.out.Out) {
		return false
	}
	lines := f.out.Out.Header["Grpc-Timeout"]
	if len(lines) != 1 {
		return false
	}
	timeout, ok := parseCallTimeout(lines[0])
	if !ok || time.Since(f.started) < timeout { // the target's time begins later
		return false
	}
	if !err.HeaderSent {
		err.Kind, err.Err = culvert.Timeout, fmt.Errorf("%w: %w", errCallOverdue, err.Err)
	}
	return true
}

// cancelledByTarget reports whether err is of net/http's transport whose target has reset the stream with CANCEL.
func cancelledByTarget(err error) bool {
	return err != nil && streamReset(err) && strings.HasSuffix(err.Error(), "; CANCEL; received from peer")
}

// callTimeoutUnits are those of gRPC over HTTP/2 (github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, TimeoutUnit).
var callTimeoutUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// parseCallTimeout parses the value of a grpc-timeout field: at most 8 digits and a unit. One that is longer than the longest
// Duration is that.
func parseCallTimeout(s string) (timeout time.Duration, ok bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	unit, ok := callTimeoutUnits[s[len(s)-1]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if !ok || err != nil {
		return 0, false
	}
	const longest = time.Duration(1<<63 - 1)
	if time.Duration(n) > longest/unit {
		return longest, true
	}
	return time.Duration(n) * unit, true
}
