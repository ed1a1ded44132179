// Command peers is those peers of the tests that are written in Go, in one binary: the first argument names one.
//
//	peers kubectl get pods …     kubectl, as far as its commands that watch and stream go
//	peers cluster                what kubectl needs of a cluster
//	peers grpc-server            gRPC's interop server
//	peers grpc-client CASE ADDR  one case of gRPC's interop client
//
// The servers print their address, and end with their standard input. It is a program of its own so that what is not
// culvert's is built without the race detector.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "peers: kubectl, cluster, grpc-server or grpc-client?")
		os.Exit(2)
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	run, found := map[string]func() error{"kubectl": kubectl, "cluster": cluster, "grpc-server": grpcServer, "grpc-client": grpcClient}[name]
	if !found {
		fmt.Fprintf(os.Stderr, "peers: no %q in here\n", name)
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// listen listens on a free port of loopback and prints its address.
func listen() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		fmt.Println(l.Addr())
	}
	return l, err
}

// untilInputEnds waits for the end of the standard input.
func untilInputEnds() { _, _ = io.Copy(io.Discard, os.Stdin) }
