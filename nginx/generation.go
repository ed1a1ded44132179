package nginx

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/gate"
	"github.com/culvert-go/culvert/nginx/internal/engine"
	"github.com/culvert-go/culvert/nginx/internal/http3"
	"github.com/culvert-go/culvert/nginx/internal/stream"
	"github.com/culvert-go/culvert/server"
)

// idleGrace is how long the idle connections of a replaced configuration are kept: a client that is about to send its next
// request can send it, and learns by the response that it is the connection's last. A request that crosses the connection's
// end is lost, unless the client may repeat it.
var idleGrace = 500 * time.Millisecond // tests have a slow machine

// generation is one loaded configuration that serves. After a reload the former one completes the requests and tunnels that
// it has begun, beside the new one.
type generation struct {
	engine    *engine.Engine
	listeners map[socketKey]engine.Listener
	views     []*view
	passable  map[stream.Address]*socket // where pass may hand a connection to; complete before anything is accepted
	servers   []*server.Server
	http3     []*http3.Server
	serving   sync.WaitGroup  // the servers' Accept loops
	open      gate.Gate       // connections, but for those of tunnels
	retired   atomic.Bool     // each response is the last one of its connection
	active    gate.Gate       // handlers that run, those of tunnels included
	ctx       context.Context // ends when they are to be cut off
	end       context.CancelFunc
}

func newGeneration(e *engine.Engine) *generation {
	g := &generation{engine: e, listeners: map[socketKey]engine.Listener{}}
	g.ctx, g.end = context.WithCancel(context.Background())
	for _, l := range e.Listeners() {
		g.listeners[keyOf(l)] = l
	}
	return g
}

// serve serves the sockets, which are those of all listeners.
func (g *generation) serve(sockets map[socketKey]*socket) {
	g.engine.Start()
	g.findPassable(sockets)
	defer g.serveStreams(sockets)
	defer g.serveHTTP3(sockets)
	for _, l := range g.engine.Listeners() {
		s, v := g.newServer(l), sockets[keyOf(l)].view()
		g.servers, g.views = append(g.servers, s), append(g.views, v)
		var from net.Listener = v
		if l.ProxyProtocol {
			from = proxyListener{v, l.ReadHeaderTimeout}
		}
		g.serving.Go(func() {
			if l.TLS != nil {
				_ = s.ServeTLS(from, "", "") // ends when the view is closed
			} else {
				_ = s.Serve(from)
			}
		})
	}
}

// newServer returns the server of one of its listeners.
func (g *generation) newServer(l engine.Listener) *server.Server {
	s := connectionServer(l, counted{g, l.Handler})
	s.ConnState = func(conn net.Conn, state http.ConnState) {
		g.track(state)
		l.ConnState(conn, state)
	}
	s.ErrorLog = slog.NewLogLogger(g.engine.Logger().Handler(), slog.LevelInfo)
	s.BaseContext = func(net.Listener) context.Context { return g.ctx }
	return s
}

// connectionServer returns a server with what the configuration says of a listener's connections. h responds also to requests
// that are refused.
func connectionServer(l engine.Listener, h http.Handler) *server.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(l.HTTP2 && l.TLS != nil)
	protocols.SetUnencryptedHTTP2(l.HTTP2 && l.TLS == nil)
	s := &server.Server{
		Handler:           h,
		OnRefused:         func(w http.ResponseWriter, r *server.Refusal) { h.ServeHTTP(w, engine.RefusedRequest(r)) },
		TLSConfig:         l.TLS,
		Protocols:         &protocols,
		ReadHeaderTimeout: l.ReadHeaderTimeout,
		IdleTimeout:       l.IdleTimeout,
		MaxHeaderBytes:    l.MaxHeaderBytes,
		// A client that reads nothing holds its streams for ever otherwise, also when their handlers end.
		HTTP2:       &http.HTTP2Config{WriteByteTimeout: time.Minute, MaxConcurrentStreams: l.MaxStreams},
		ConnContext: l.ConnContext,
		ConnState:   l.ConnState,
		// OPTIONS * is no target of nginx's either: the engine refuses it.
		DisableGeneralOptionsHandler: true,
		KeepFieldNames:               true,
	}
	if l.IdleTimeout == 0 {
		s.SetKeepAlivesEnabled(false)
	}
	return s
}

// track counts the open connections.
func (g *generation) track(state http.ConnState) {
	switch state {
	case http.StateNew:
		g.open.Split()
	case http.StateHijacked, http.StateClosed:
		g.open.Leave()
	}
}

// counted keeps track of a generation's handlers, also of those that have taken their connection, which the server forgets.
type counted struct {
	generation *generation
	next       http.Handler
}

func init() {
	clientside.RegisterReturner(func(c counted) bool { return clientside.Returns(c.next) })
}

// ServeHTTP implements http.Handler.
func (c counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g := c.generation
	if _, ok := g.active.Enter(); ok {
		defer g.active.Leave()
	}
	if g.retired.Load() && r.ProtoMajor == 1 && r.Header["Upgrade"] == nil {
		w.Header().Set("Connection", "close")
	}
	c.next.ServeHTTP(w, r)
}

// finish gives idle connections the time for one more request and closes them, waits for every request
// and tunnel and releases the configuration. If ctx or worker_shutdown_timeout ends before, everything
// is cut off.
func (g *generation) finish(ctx context.Context) {
	ctx, cancel := g.bounded(ctx)
	defer cancel()
	g.retire(ctx, g.http3)
	stop := context.AfterFunc(ctx, g.end)
	defer stop()
	_ = g.active.Drain(context.Background())
	g.end()
	g.engine.Close()
}

// bounded bounds ctx by worker_shutdown_timeout.
func (g *generation) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if t := g.engine.Settings().ShutdownTimeout; t > 0 {
		return context.WithTimeout(ctx, t)
	}
	return ctx, func() {}
}

// retire stops serving, but for datagrams, and the sockets of QUIC that are not given. It returns when connections have ended, or ctx.
func (g *generation) retire(ctx context.Context, quic []*http3.Server) {
	for _, v := range g.views {
		v.Close()
	}
	g.serving.Wait()
	for _, s := range quic {
		s.Retire()
	}
	g.retired.Store(true)
	g.engine.Retire()
	g.awaitClosed(ctx)
	var shutdown sync.WaitGroup
	for _, s := range g.servers {
		shutdown.Go(func() {
			if s.Shutdown(ctx) != nil {
				s.Close()
			}
		})
	}
	for _, s := range quic {
		shutdown.Go(func() { _ = s.Shutdown(ctx) })
	}
	shutdown.Wait()
}

// awaitClosed returns when no connection is open, or after the grace of idle ones, or at the end of ctx. No connection is
// accepted any more when it is called.
func (g *generation) awaitClosed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, idleGrace)
	defer cancel()
	_ = g.open.Drain(ctx)
}
