package demo

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/server"
)

// backends are the servers behind the demonstration.
type backends struct {
	servers []*server.Server
	names   []string // placeholder, address, placeholder, address, ...
	end     context.CancelFunc
}

func startBackends() (*backends, error) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &backends{end: cancel}
	for _, s := range []struct {
		placeholder string
		handler     http.Handler
	}{
		{"{{APP1}}", app("app 1")},
		{"{{APP2}}", app("app 2")},
		{"{{SOCKET}}", newSocket()},
		{"{{GONE}}", newGone()},
		{"{{CLUSTER}}", newCluster()},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, b.close())
		}
		backend := &server.Server{
			Handler:           s.handler,
			ReadHeaderTimeout: 10 * time.Second,
			BaseContext:       func(net.Listener) context.Context { return ctx },
		}
		b.servers = append(b.servers, backend)
		b.names = append(b.names, s.placeholder, l.Addr().String())
		go backend.Serve(l) // ends with Close
	}
	return b, nil
}

// placeholders returns the placeholders of the configuration with their replacements, in pairs.
func (b *backends) placeholders() []string { return b.names }

func (b *backends) close() error {
	b.end()
	var err error
	for _, s := range b.servers {
		err = errors.Join(err, s.Close())
	}
	return err
}
