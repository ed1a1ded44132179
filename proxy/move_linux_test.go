package proxy_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// TCP's urgent data is no part of a response. What follows it arrives all the same, where the kernel
// moves the body too.
func TestResponseWithUrgentData(t *testing.T) { onPaths(t, testResponseWithUrgentData) }
func testResponseWithUrgentData(t *testing.T, via path) {
	leaktest.Check(t)
	body := wiretest.Pattern(500_000)
	urgent := make(chan error, 1)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		p.Header()
		p.Send(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", len(body)))
		p.Send(string(body[:len(body)/2]))
		urgent <- sendUrgent(p.Conn.(syscall.Conn))
		p.Send(string(body[len(body)/2:]))
		p.Ended()
	})
	p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target)})
	client := wiretest.Dial(t, wiretest.Serve(t, p))
	client.Send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	client.Header()
	wiretest.SameBytes(t, "body", []byte(client.Rest()), body)
	if err := wiretest.Await(t, urgent, "urgent data"); err != nil {
		t.Error(err)
	}
}

func sendUrgent(conn syscall.Conn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		sendErr = syscall.Sendto(int(fd), []byte("!"), syscall.MSG_OOB, nil)
		return sendErr != syscall.EAGAIN
	})
	if err == nil {
		err = sendErr
	}
	return err
}
