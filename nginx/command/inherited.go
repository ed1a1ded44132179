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
func inherited() ([]net.Listener, error) {
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
			return nil, fmt.Errorf("invalid LISTEN_FDS %q", count)
		}
		for i := range n {
			numbers = append(numbers, strconv.Itoa(firstInherited+i))
		}
	}
	return listenersOf(numbers)
}

// firstInherited is the first descriptor behind the standard ones.
const firstInherited = 3

// listenersOf returns the listeners of descriptors. With an error all are closed.
func listenersOf(numbers []string) (list []net.Listener, err error) {
	for _, number := range numbers {
		l, one := listenerOf(number)
		if one != nil {
			for _, l := range list {
				l.Close()
			}
			return nil, one
		}
		list = append(list, l)
	}
	return list, nil
}

func listenerOf(number string) (net.Listener, error) {
	fd, err := strconv.Atoi(number)
	if err != nil || fd < firstInherited {
		return nil, fmt.Errorf("invalid socket number %q in %s", number, inheritedEnv)
	}
	file := os.NewFile(uintptr(fd), "inherited socket "+number)
	defer file.Close() // the listener has a copy
	l, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("inherited socket %s: %w", number, err)
	}
	if unix, ok := l.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(true)
	}
	return l, nil
}
