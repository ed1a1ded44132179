package command

import (
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/culvert-go/culvert/examples/nginx/engine"
)

// listen binds the socket of a listener. A unix socket is for everybody: as with nginx, who
// may connect is a matter of the folder that it is in. A file that is there already is not
// removed, since somebody may listen on it.
func listen(l engine.Listener) (net.Listener, error) {
	unix, name := l.Network == "unix", l.Address
	if unix {
		name = "unix:" + name
	}
	listener, err := net.Listen(l.Network, l.Address)
	if err != nil {
		return nil, bindError(name, err)
	}
	if !unix {
		return listener, nil
	}
	if err := os.Chmod(l.Address, 0o666); err != nil {
		listener.Close()
		return nil, fmt.Errorf("chmod() \"%s\" failed (%s)", l.Address, systemError(err))
	}
	return listener, nil
}

// logDeleted says that a reload takes a unix socket's file away, which closing it does.
func (s *server) logDeleted(socket *socket) {
	if addr := socket.Addr(); addr.Network() == "unix" {
		s.log(slog.LevelWarn, "deleting socket "+addr.String())
	}
}
