package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/server"
)

// backends listen on the targets' addresses. They respond with the request that they received,
// and echo WebSockets.
type backends []*server.Server

func startBackends(c *config) (backends, error) {
	var list backends
	started := map[string]bool{}
	for _, r := range c.Proxy {
		u, err := url.Parse(r.Target)
		if err != nil || u.Port() == "" || started[u.Host] {
			continue
		}
		l, err := net.Listen("tcp", u.Host)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("backend of %s: %w", r.Target, err), list.close())
		}
		started[u.Host] = true
		s := &server.Server{Handler: http.HandlerFunc(echo), ReadHeaderTimeout: 10 * time.Second}
		list = append(list, s)
		go s.Serve(l) // ends with close
	}
	return list, nil
}

func (list backends) close() (err error) {
	for _, s := range list {
		err = errors.Join(err, s.Close())
	}
	return err
}

func echo(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		fmt.Fprintf(w, "received %s %s for %s\n", r.Method, r.RequestURI, r.Host)
		return
	}
	u := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // it echoes to every client
	conn, err := u.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil || conn.WriteMessage(kind, message) != nil {
			return
		}
	}
}
