package nginx

import (
	"fmt"
	"net"
	"os"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
	"github.com/culvert-go/culvert/nginx/internal/syserror"
)

// listen binds the socket of a listener. A unix socket is open to every user: as with nginx, the
// permissions of its directory decide who may connect. A file that exists is not removed, since
// another process may listen on it.
func listen(l engine.Listener) (net.Listener, error) {
	unix, name := l.Network == "unix", l.Address
	if unix {
		name = "unix:" + name
	}
	listener, err := net.Listen(l.Network, l.Address)
	if err != nil {
		return nil, syserror.Bind(name, err)
	}
	if !unix {
		return listener, nil
	}
	if err := os.Chmod(l.Address, 0o666); err != nil {
		listener.Close()
		return nil, fmt.Errorf("chmod() \"%s\" failed (%s)", l.Address, conf.Errno(err))
	}
	return listener, nil
}
