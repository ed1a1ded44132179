package nginx

import (
	"fmt"
	"net"
	"os"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/stream"
	"github.com/culvert-go/culvert/nginx/internal/syserror"
)

// listen binds the socket of a listener. A unix socket is open to every user: as with nginx, the
// permissions of its directory decide who may connect. A file that exists is not removed, since
// another process may listen on it.
func listen(key socketKey) (*socket, error) {
	name := key.String()
	if key.isUDP() {
		c, err := net.ListenPacket(key.network, key.address)
		if err != nil {
			return nil, syserror.Bind(name, err)
		}
		return &socket{packets: stream.NewPackets(c.(*net.UDPConn))}, nil
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

// String returns the address as nginx writes it.
func (k socketKey) String() string {
	if k.network == "unix" {
		return "unix:" + k.address
	}
	return k.address
}
