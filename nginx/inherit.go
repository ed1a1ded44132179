package nginx

import (
	"net"
	"os"
)

// inherit returns the Options.Listeners that are those of addresses of the configuration, and closes the others.
func inherit(list []net.Listener) map[socketKey]net.Listener {
	inherited := map[socketKey]net.Listener{}
	for _, l := range list {
		key := keyOfAddr(l.Addr())
		if before := inherited[key]; before != nil {
			before.Close()
		}
		inherited[key] = l
	}
	return inherited
}

// closeInherited closes the sockets that the configuration does not have. The caller holds s.mu.
func (s *Server) closeInherited() {
	for _, l := range s.inherited {
		l.Close()
	}
	s.inherited = nil
}

// keyOfAddr returns the key of a bound socket.
func keyOfAddr(addr net.Addr) socketKey {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		if tcp.IP.To4() != nil {
			return socketKey{"tcp4", addr.String()}
		}
		return socketKey{"tcp6", addr.String()}
	}
	return socketKey{addr.Network(), addr.String()}
}

// HandOver returns a copy of each socket that is bound, but for those of UDP, for the process that is to serve them: it gets them as Options.Listeners. From
// then on the end of this Server leaves files of unix sockets alone, unless keep is called, which a program does when the
// other process has failed. The caller closes the files. Without sockets there are none.
func (s *Server) HandOver() (files []*os.File, keep func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, socket := range s.sockets {
		if socket.Listener == nil {
			continue
		}
		f, err := copyOf(socket.Listener)
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, nil, err
		}
		files = append(files, f)
	}
	s.unlink(false)
	return files, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unlink(true)
	}, nil
}

// unlink sets whether closing unix sockets removes their files. The caller holds s.mu.
func (s *Server) unlink(on bool) {
	for _, socket := range s.sockets {
		if l, ok := socket.Listener.(*net.UnixListener); ok {
			l.SetUnlinkOnClose(on)
		}
	}
}
