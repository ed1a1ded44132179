package command

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// inheritedEnv is the variable by which nginx gives its sockets to the program that replaces it: descriptors, each with a semicolon
// behind it (ngx_add_inherited_sockets). By it nginx can be replaced by culvert without a gap, and the reverse.
const inheritedEnv = "NGINX"

// inherited returns the sockets that the process has been given, by nginx, by itself before an upgrade, or by systemd (sd_listen_fds(3)),
// and removes their names from the environment, so that no child process takes them for its own.
func inherited() (sockets, error) {
	text, upgrade := os.LookupEnv(inheritedEnv)
	count, activated := os.LookupEnv("LISTEN_FDS")
	activated = activated && os.Getenv("LISTEN_PID") == strconv.Itoa(os.Getpid())
	for _, name := range []string{inheritedEnv, "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	var numbers []string
	switch {
	case upgrade:
		numbers = strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ':' })
	case activated:
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 || n > 1024 {
			return sockets{}, fmt.Errorf("invalid LISTEN_FDS %q", count)
		}
		for i := range n {
			numbers = append(numbers, strconv.Itoa(firstInherited+i))
		}
	}
	return socketsOf(numbers)
}

// firstInherited is the first descriptor behind the standard ones.
const firstInherited = 3

// sockets are those that a process has been given.
type sockets struct {
	listeners []net.Listener
	packets   []net.PacketConn // of UDP
}

func (s *sockets) close() {
	for _, l := range s.listeners {
		l.Close()
	}
	for _, c := range s.packets {
		c.Close()
	}
}

// socketsOf returns the sockets of descriptors. With an error all are closed.
func socketsOf(numbers []string) (sockets, error) {
	var all sockets
	for _, number := range numbers {
		if err := all.add(number); err != nil {
			all.close()
			return sockets{}, err
		}
	}
	return all, nil
}

// add adds the socket of a descriptor.
func (s *sockets) add(number string) error {
	fd, err := strconv.Atoi(number)
	if err != nil || fd < firstInherited {
		return fmt.Errorf("invalid socket number %q in %s", number, inheritedEnv)
	}
	file := os.NewFile(uintptr(fd), "inherited socket "+number)
	defer file.Close() // the socket has a copy
	l, err := net.FileListener(file)
	if err != nil {
		c, notUDP := net.FilePacketConn(file)
		if notUDP != nil {
			return fmt.Errorf("inherited socket %s: %w", number, err)
		}
		s.packets = append(s.packets, c)
		return nil
	}
	if unix, ok := l.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(true)
	}
	s.listeners = append(s.listeners, l)
	return nil
}
