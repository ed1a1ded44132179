package main

import (
	"net"
	"os"
	"strconv"
)

// listen returns the socket that systemd has opened for this program (sd_listen_fds(3)), or else one that it opens
// itself.
func listen(addr string) (net.Listener, error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) || os.Getenv("LISTEN_FDS") != "1" {
		return net.Listen("tcp", addr)
	}
	f := os.NewFile(3, "systemd") // the first descriptor, by sd_listen_fds(3)
	defer f.Close()               // the listener has its own
	return net.FileListener(f)
}
