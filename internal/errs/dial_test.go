package errs_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
)

// What this host lacks is not a target's failure, and what concerns an address is.
func TestDialKind(t *testing.T) {
	failed := func(call string, errno syscall.Errno) error {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:80"))
		return &net.OpError{Op: "dial", Net: "tcp", Addr: addr, Err: os.NewSyscallError(call, errno)}
	}
	for _, test := range []struct {
		err  error
		want culvert.ErrorKind
	}{
		{failed("socket", syscall.EMFILE), culvert.Internal},
		{failed("socket", syscall.ENFILE), culvert.Internal},
		{failed("socket", syscall.EACCES), culvert.Internal},
		{failed("socket", syscall.EPERM), culvert.Internal},
		{failed("connect", syscall.ENOBUFS), culvert.Internal},
		{failed("connect", syscall.ENOMEM), culvert.Internal},
		{failed("connect", syscall.EADDRNOTAVAIL), culvert.Internal},
		{syscall.EADDRNOTAVAIL, culvert.Internal},
		{failed("bind", syscall.EADDRNOTAVAIL), culvert.Internal},
		{failed("bind", syscall.EADDRINUSE), culvert.Internal}, // all ports of the address that is bound are used
		{failed("socket", syscall.EAFNOSUPPORT), culvert.DialFailed},
		{failed("connect", syscall.EPERM), culvert.DialFailed},
		{failed("connect", syscall.EACCES), culvert.DialFailed},
		{failed("connect", syscall.ECONNREFUSED), culvert.DialFailed},
		{failed("connect", syscall.ENETUNREACH), culvert.DialFailed},
		{failed("connect", syscall.EAGAIN), culvert.Timeout}, // net's own verdict, of a unix socket's backlog
		{failed("connect", syscall.ETIMEDOUT), culvert.Timeout},
		{context.DeadlineExceeded, culvert.Timeout},
		{errors.New("no"), culvert.DialFailed},
	} {
		if got := errs.KindOfDial(test.err); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}
