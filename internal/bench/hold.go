package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/wsupgrade"
)

// perProcess is how many tunnels one process can hold with 20,000 descriptors.
const perProcess = 9000

// The processes that hold tunnels: a gateway with a registry, and its clients, whose
// number follows the name.
const (
	heldName    = "culvert, held"
	clientsName = "clients "
)

// holding is a gateway with an origin of its own and clients of its own.
type holding struct {
	origin, gateway, clients *process
}

// holdTunnels opens n idle tunnels, lets each echo once and drains them.
func holdTunnels(out io.Writer, n int) (err error) {
	held := make([]holding, (n+perProcess-1)/perProcess)
	defer func() {
		for _, h := range held {
			h.stop()
		}
	}()
	rest := n
	for i := range held {
		share := rest / (len(held) - i)
		rest -= share
		if err := held[i].start(share); err != nil {
			return err
		}
	}
	before, err := usedByAll(held)
	if err != nil {
		return err
	}
	if err := commandAll(out, held, "open", n); err != nil {
		return err
	}
	after, err := usedByAll(held)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d tunnels in %d gateways: %.1f KiB idle and %.1f descriptors each\n", n, len(held),
		float64(after.rss-before.rss)/1024/float64(n), float64(after.files-before.files)/float64(n))
	if err := commandAll(out, held, "echo", n); err != nil {
		return err
	}
	return commandAll(out, held, "drain", n)
}

func (h *holding) start(tunnels int) (err error) {
	if h.origin, err = startSelf(echoName, ""); err != nil {
		return err
	}
	if h.gateway, err = startSelf(heldName, h.origin.address); err != nil {
		return err
	}
	h.clients, err = startSelf(clientsName+strconv.Itoa(tunnels), h.gateway.address)
	return err
}

func (h *holding) stop() {
	for _, p := range []*process{h.clients, h.gateway, h.origin} {
		if p != nil {
			p.stop()
		}
	}
}

// usedByAll is what the idle gateways use.
func usedByAll(held []holding) (sum snapshot, err error) {
	for _, h := range held {
		s, err := h.gateway.usedWhenIdle()
		if err != nil {
			return sum, err
		}
		sum.rss += s.rss
		sum.files += s.files
	}
	return sum, nil
}

// commandAll sends all clients a command, and prints how many obeyed and how long it took. A
// drain is sent to the gateways as well.
func commandAll(out io.Writer, held []holding, command string, want int) error {
	var done atomic.Int64
	start := time.Now()
	err := each(len(held), func(i int) error {
		var drained sync.WaitGroup
		if command == "drain" {
			drained.Go(func() { _, _ = held[i].gateway.call(command) })
		}
		reply, err := held[i].clients.call(command)
		drained.Wait()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(reply, 10, 64)
		done.Add(n)
		return err
	})
	fmt.Fprintf(out, "%s: %d in %v\n", command, done.Load(), time.Since(start).Round(time.Millisecond))
	if err == nil && done.Load() != int64(want) {
		err = fmt.Errorf("%s: %d of %d", command, done.Load(), want)
	}
	return err
}

// serveHeld serves a gateway that can be drained.
func serveHeld(target string) error {
	registry, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{})
	if err != nil {
		return err
	}
	f, err := wsupgrade.New(wsupgrade.Options{Registry: registry})
	if err != nil {
		return err
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { start(f, target, w, r) })
	return serveHTTP(handler, true, false, map[string]func() string{"drain": func() string {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return fmt.Sprint(registry.Drain(ctx, wsupgrade.GoingAway))
	}})
}

// start forwards a WebSocket and returns when it is open.
func start(f *wsupgrade.Forwarder, target string, w http.ResponseWriter, r *http.Request) {
	out := r.WithContext(r.Context())
	out.URL = &url.URL{Scheme: "http", Host: target, Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	if _, err := f.Start(w, r, out, nil); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
	}
}

// serveClients is n clients of the gateway. Each reply is the number of clients that have obeyed.
func serveClients(n int, gateway string) {
	fmt.Println("-") // in the place of an address
	clients := make([]*tunnelClient, n)
	all := func(workers int, do func(i int) error) func() string {
		return func() string {
			var done atomic.Int64
			_ = each(workers, func(worker int) error {
				for i := worker; i < n; i += workers {
					if do(i) == nil {
						done.Add(1)
					}
				}
				return nil
			})
			return fmt.Sprint(done.Load())
		}
	}
	message := make([]byte, 128)
	obey(map[string]func() string{
		"open": all(16, func(i int) (err error) {
			clients[i], err = dialTunnel(&process{address: gateway})
			return err
		}),
		"echo":  all(16, func(i int) error { return clients[i].echo(message) }),
		"drain": all(n, func(i int) error { return clients[i].closed() }),
	})
}

// closed reads a Close frame with the code 1001, replies to it and reads to the end.
func (c *tunnelClient) closed() error {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(c.conn, frame); err != nil {
		return err
	}
	if !bytes.Equal(frame, []byte{0x88, 2, 0x03, 0xe9}) {
		return fmt.Errorf("% x in the place of a Close frame", frame)
	}
	if _, err := c.conn.Write([]byte{0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9}); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c.conn)
	return err
}
