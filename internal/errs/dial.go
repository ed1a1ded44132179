package errs

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/culvert-go/culvert"
)

// KindOfDial returns the kind of a connection that could not be made: Internal where that is Local.
func KindOfDial(err error) culvert.ErrorKind {
	var netErr net.Error
	switch {
	case Local(err):
		return culvert.Internal
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return culvert.Timeout
	}
	return culvert.DialFailed
}

// Local reports whether a connection could not be made since this process or this host lacks what any connection
// needs, which says nothing about the target: descriptors, memory or local ports, or the right to make or bind a socket.
//
// What connect(2) itself reports is the target's matter, though this host may be the cause: a firewall (EPERM, EACCES), the
// permissions of a unix socket (EACCES), a family that is not supported (EAFNOSUPPORT) or a route that is missing
// (ENETUNREACH, EADDRNOTAVAIL) concern some addresses, and other targets can be reached.
func Local(err error) bool {
	for _, lacks := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, lacks) {
			return true
		}
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		switch call.Syscall {
		case "socket":
			return !errors.Is(err, syscall.EAFNOSUPPORT) && !errors.Is(err, syscall.EPROTONOSUPPORT)
		case "bind": // to the address that a net.Dialer names
			return true
		}
	}
	return NoPort(err) && reachable(err)
}

// NoPort reports whether err may be that of a host whose local ports are all used. Most systems count them for each
// address that is dialled, so that another one may still be reached.
func NoPort(err error) bool { return errors.Is(err, syscall.EADDRNOTAVAIL) }

// reachable reports whether this host has an address from which the one of err can be reached. connect(2) fails in the
// same way without one, for [::1] on a host without IPv6 for instance, as with all ports used. A UDP socket, which has other
// ports and sends nothing, tells them apart.
func reachable(err error) bool {
	var op *net.OpError
	if !errors.As(err, &op) {
		return true
	}
	addr, ok := op.Addr.(*net.TCPAddr)
	if !ok {
		return true
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(addr.AddrPort()))
	if err != nil {
		return !NoPort(err)
	}
	conn.Close()
	return true
}
