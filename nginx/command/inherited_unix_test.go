//go:build unix

package command

import (
	"net"
	"os"
	"strconv"
	"testing"
)

// Descriptors are those of listeners or of UDP. Any other is an error, which closes all.
func TestSocketsOf(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	unix, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	number := func(s interface{ File() (*os.File, error) }) string {
		f, err := s.File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return strconv.Itoa(int(f.Fd()))
	}
	numbers := []string{number(tcp.(*net.TCPListener)), number(udp.(*net.UDPConn)), number(unix.(*net.UnixListener))}
	all, err := socketsOf(numbers)
	if err != nil {
		t.Fatal(err)
	}
	defer all.close()
	if len(all.listeners) != 2 || len(all.packets) != 1 || all.packets[0].LocalAddr().String() != udp.LocalAddr().String() {
		t.Errorf("%d listeners, %d sockets of UDP", len(all.listeners), len(all.packets))
	}
	if _, err := socketsOf([]string{"1"}); err == nil {
		t.Error("standard output is a socket")
	}
}
