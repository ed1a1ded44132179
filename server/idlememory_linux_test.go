package server

import (
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// A parked connection takes little more memory than its socket. The clients are descriptors, which take none of the heap.
func TestMemoryOfParkedConnections(t *testing.T) {
	const most = 900 // bytes of the heap, of which package net takes about 300
	s := &Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(okBody) }), parkAfter: time.Millisecond}
	addr, err := net.ResolveTCPAddr("tcp", start(t, s))
	if err != nil {
		t.Fatal(err)
	}
	conns := wiretest.Size(8000, 2000)
	clients := make([]int, 0, conns+100)
	t.Cleanup(func() {
		for _, fd := range clients {
			_ = syscall.Close(fd)
		}
	})
	open := func(n int) {
		for range n {
			clients = append(clients, connectFD(t, addr.Port))
			getFD(t, clients[len(clients)-1])
		}
		awaitParked(t)
	}
	open(100) // what is made once
	before := heap()
	open(conns)
	if each := (heap() - before) / int64(conns); each > most {
		t.Errorf("%d bytes each, at most %d", each, most)
	} else {
		t.Logf("%d bytes each", each)
	}
}

// connectFD connects to a port of this machine without package net.
func connectFD(t *testing.T, port int) int {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		_ = syscall.Close(fd)
		t.Fatal(err)
	}
	return fd
}

func getFD(t *testing.T, fd int) {
	if _, err := syscall.Write(fd, rawGet); err != nil {
		t.Fatal(err)
	}
	var buf [1 << 10]byte
	if n, err := syscall.Read(fd, buf[:]); n <= 0 {
		t.Fatal(n, err)
	}
}
