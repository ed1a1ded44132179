package fault_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/fault"
)

// What this host lacks is not a target's failure, and what concerns an address is.
func TestDialKind(t *testing.T) {
	failed := func(call string, errno syscall.Errno) error {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:80"))
		return &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: os.NewSyscallError(call, errno)}
	}
	for _, test := range []struct {
		err  error
		want fault.Kind
	}{
		{failed("socket", syscall.EMFILE), fault.Internal},
		{failed("socket", syscall.ENFILE), fault.Internal},
		{failed("socket", syscall.EACCES), fault.Internal},
		{failed("socket", syscall.EPERM), fault.Internal},
		{failed("connect", syscall.ENOBUFS), fault.Internal},
		{failed("connect", syscall.ENOMEM), fault.Internal},
		{failed("connect", syscall.EADDRNOTAVAIL), fault.Internal},
		{syscall.EADDRNOTAVAIL, fault.Internal},
		{failed("bind", syscall.EADDRNOTAVAIL), fault.Internal},
		{failed("bind", syscall.EADDRINUSE), fault.Internal}, // all ports of the address that is bound are used
		{failed("socket", syscall.EAFNOSUPPORT), fault.Dial},
		{failed("connect", syscall.EPERM), fault.Dial},
		{failed("connect", syscall.EACCES), fault.Dial},
		{failed("connect", syscall.ECONNREFUSED), fault.Dial},
		{failed("connect", syscall.ENETUNREACH), fault.Dial},
		{failed("connect", syscall.EAGAIN), fault.Timeout}, // net's own verdict, of a unix socket's backlog
		{failed("connect", syscall.ETIMEDOUT), fault.Timeout},
		{context.DeadlineExceeded, fault.Timeout},
		{errors.New("no"), fault.Dial},
	} {
		if got := fault.DialKind(test.err); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}
