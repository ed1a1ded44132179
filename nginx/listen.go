package nginx

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
	"github.com/culvert-go/culvert/nginx/internal/http3"
	"github.com/culvert-go/culvert/nginx/internal/stream"
	"github.com/culvert-go/culvert/nginx/internal/syserror"
)

// A port that is in use is tried again: a process that ends may still have it (ngx_open_listening_sockets).
const bindTries = 5

var bindPause = 500 * time.Millisecond // tests don't wait as long

// listenOn returns the socket of an address of e: one that was inherited, one whose connections have not ended yet, or a new one. The caller holds s.mu.
func (s *Server) listenOn(key socketKey, e *engine.Engine) (*socket, error) {
	if inherited := s.inherited[key]; inherited != nil {
		delete(s.inherited, key)
		return &socket{Listener: inherited}, nil
	}
	datagrams := socketKey{network: key.network, address: key.address} // of QUIC or of stream
	if inherited := s.datagrams[datagrams]; inherited != nil {
		delete(s.datagrams, datagrams)
		return packetSocket(key, inherited, e), nil
	}
	if former := s.leaving[key]; former != nil {
		if former.http3.Reopen() {
			return former, nil
		}
		delete(s.leaving, key)
	}
	for try := 1; ; try++ {
		bound, err := listen(key, e)
		if err == nil || try == bindTries || !errors.Is(err, syscall.EADDRINUSE) {
			return bound, err
		}
		s.Logger().Log(s.running, LevelNotice, err.Error()+", try again to bind() after 500ms")
		time.Sleep(bindPause)
	}
}

// listen binds the socket of a listener. A unix socket is open to every user: as with nginx, the
// permissions of its directory decide who may connect. A file that exists is not removed, since
// another process may listen on it.
func listen(key socketKey, e *engine.Engine) (*socket, error) {
	name := key.String()
	if key.isUDP() {
		c, err := net.ListenPacket(key.network, key.address)
		if err != nil {
			return nil, syserror.Bind(name, err)
		}
		return packetSocket(key, c.(*net.UDPConn), e), nil
	}
	listener, err := net.Listen(key.network, key.address)
	if err != nil {
		return nil, syserror.Bind(name, err)
	}
	if key.network != "unix" {
		return &socket{Listener: listener}, nil
	}
	if err := os.Chmod(key.address, 0o666); err != nil {
		listener.Close()
		return nil, fmt.Errorf("chmod() \"%s\" failed (%s)", key.address, conf.Errno(err))
	}
	return &socket{Listener: listener}, nil
}

// packetSocket returns the socket of a listener of datagrams.
func packetSocket(key socketKey, c *net.UDPConn, e *engine.Engine) *socket {
	if key.quic {
		return &socket{http3: http3.NewSocket(c, hostKey(e, key))}
	}
	return &socket{packets: stream.NewPackets(c)}
}

// String returns the address as nginx writes it.
func (k socketKey) String() string {
	if k.network == "unix" {
		return "unix:" + k.address
	}
	return k.address
}
