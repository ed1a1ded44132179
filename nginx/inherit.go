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
	for _, c := range s.datagrams {
		c.Close()
	}
	s.inherited, s.datagrams = nil, nil
}

// inheritPackets is inherit for Options.PacketConns.
func inheritPackets(list []net.PacketConn) map[socketKey]*net.UDPConn {
	inherited := map[socketKey]*net.UDPConn{}
	for _, c := range list {
		udp, ok := c.(*net.UDPConn)
		if !ok {
			c.Close()
			continue
		}
		key := socketKey{network: "udp6", address: udp.LocalAddr().String()}
		if udp.LocalAddr().(*net.UDPAddr).IP.To4() != nil {
			key.network = "udp4"
		}
		if before := inherited[key]; before != nil {
			before.Close()
		}
		inherited[key] = udp
	}
	return inherited
}

// keyOfAddr returns the key of a bound socket.
func keyOfAddr(addr net.Addr) socketKey {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		if tcp.IP.To4() != nil {
			return socketKey{network: "tcp4", address: addr.String()}
		}
		return socketKey{network: "tcp6", address: addr.String()}
	}
	return socketKey{network: addr.Network(), address: addr.String()}
}

// HandOver returns a copy of each socket that is bound, for the process that is to serve them: it gets them as
// Options.Listeners and Options.PacketConns. From then on the end of this Server leaves files of unix sockets alone, and its
// clients of HTTP/3 are sent to the other process: two can't read the datagrams of one socket. Their requests that have begun
// have half a second to end. keep reverts both, which a program does when the other process has failed. The caller closes the files. Without sockets there are none.
func (s *Server) HandOver() (files []*os.File, keep func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, socket := range s.sockets {
		f, err := copyOf(socket.descriptor())
		if err != nil {
			for _, f := range files {
				f.Close()
			}
			return nil, nil, err
		}
		files = append(files, f)
	}
	s.unlink(false)
	s.suspend()
	return files, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unlink(true)
		s.resume()
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
