package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/culvert-go/culvert/wsupgrade"
)

// Listeners are the sockets of an Edge.
type Listeners struct {
	TCP     net.Listener
	UDP     net.PacketConn
	Metrics net.Listener // nil: none
}

// Listen opens them.
func Listen(c Config) (l Listeners, err error) {
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.TCP, err = net.Listen("tcp", c.Listen); err != nil {
		return l, fmt.Errorf("listen: %w", err)
	}
	if l.UDP, err = net.ListenPacket("udp", l.TCP.Addr().String()); err != nil {
		return l, fmt.Errorf("listen: %w", err)
	}
	if c.Metrics != "" {
		if l.Metrics, err = net.Listen("tcp", c.Metrics); err != nil {
			return l, fmt.Errorf("metrics: %w", err)
		}
	}
	return l, nil
}

func (l Listeners) close() {
	if l.TCP != nil {
		l.TCP.Close()
	}
	if l.UDP != nil {
		l.UDP.Close()
	}
	if l.Metrics != nil {
		l.Metrics.Close()
	}
}

// Serve serves until ctx ends, and then ends what is under way within the grace. It closes the listeners.
func (e *Edge) Serve(ctx context.Context, l Listeners) error {
	defer e.close()
	defer l.close()
	serving := []func() error{
		func() error { return e.overTCP.ServeTLS(l.TCP, "", "") },
		func() error { return e.over3.Serve(l.UDP) },
	}
	if l.Metrics != nil {
		serving = append(serving, func() error { return e.metrics.Serve(l.Metrics) })
	}
	ended := make(chan error, len(serving))
	for _, serve := range serving {
		go func() { ended <- serve() }()
	}
	running := len(serving)
	var failure error
	select {
	case failure = <-ended:
		running--
	case <-ctx.Done():
	}
	failure = errors.Join(failure, e.shutdown(context.WithoutCancel(ctx)))
	for range running {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			failure = errors.Join(failure, err)
		}
	}
	return failure
}

// shutdown ends streams and WebSockets, and waits for requests.
func (e *Edge) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.grace)
	defer cancel()
	e.streams.end()
	ends := []func() error{
		func() error { return e.tunnels.Drain(ctx, wsupgrade.GoingAway) },
		func() error { return e.overTCP.Shutdown(ctx) },
		func() error { return e.over3.Shutdown(ctx) },
		func() error { return e.metrics.Shutdown(ctx) },
	}
	errs := make(chan error, len(ends))
	for _, end := range ends {
		go func() { errs <- end() }()
	}
	var failure error
	for range ends {
		failure = errors.Join(failure, <-errs)
	}
	if failure != nil {
		failure = errors.Join(fmt.Errorf("requests were cut after %v: %w", e.grace, failure), e.overTCP.Close(), e.over3.Close(), e.metrics.Close())
	}
	return failure
}
