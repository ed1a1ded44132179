package nginx

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/culvert-go/culvert/internal/gate"
	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// generation is one loaded configuration that serves. After a reload the former one completes the requests and tunnels that
// it has begun, beside the new one.
type generation struct {
	engine    *engine.Engine
	listeners map[socketKey]engine.Listener
	views     []*view
	servers   []*http.Server
	serving   sync.WaitGroup // the servers' Accept loops
	newcomers newcomers
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
	for _, l := range g.engine.Listeners() {
		server, v := g.newServer(l), sockets[keyOf(l)].view()
		g.servers, g.views = append(g.servers, server), append(g.views, v)
		var from net.Listener = v
		if l.ProxyProtocol {
			from = proxyListener{v, l.ReadHeaderTimeout}
		}
		g.serving.Go(func() {
			if l.TLS != nil {
				_ = server.ServeTLS(from, "", "") // ends when the view is closed
			} else {
				_ = server.Serve(from)
			}
		})
	}
}

// newServer returns the server of one of its listeners.
func (g *generation) newServer(l engine.Listener) *http.Server {
	server := connectionServer(l)
	server.Handler = g.count(l.Handler)
	server.TLSConfig = l.TLS
	server.ConnContext = g.newcomers.connContext(l.ConnContext)
	server.ConnState = both(g.newcomers.track, l.ConnState)
	server.ErrorLog = slog.NewLogLogger(g.engine.Logger().Handler(), slog.LevelInfo)
	server.BaseContext = func(net.Listener) context.Context { return g.ctx }
	return server
}

// connectionServer returns a server with what the configuration says of a listener's connections, without a handler.
func connectionServer(l engine.Listener) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(l.HTTP2 && l.TLS != nil)
	protocols.SetUnencryptedHTTP2(l.HTTP2 && l.TLS == nil)
	server := &http.Server{
		Protocols:         &protocols,
		ReadHeaderTimeout: l.ReadHeaderTimeout,
		IdleTimeout:       l.IdleTimeout,
		MaxHeaderBytes:    l.MaxHeaderBytes,
		// A client that reads nothing holds its streams for ever otherwise, also when their handlers end.
		HTTP2:       &http.HTTP2Config{WriteByteTimeout: time.Minute},
		ConnContext: l.ConnContext,
		ConnState:   l.ConnState,
		// OPTIONS * is no target of nginx's either: the engine refuses it.
		DisableGeneralOptionsHandler: true,
	}
	if l.IdleTimeout == 0 {
		server.SetKeepAlivesEnabled(false)
	}
	return server
}

// both calls two hooks, of which the second may be nil.
func both(first, second func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	if second == nil {
		return first
	}
	return func(conn net.Conn, state http.ConnState) {
		first(conn, state)
		second(conn, state)
	}
}

// count keeps track of handlers: http.Server forgets those whose connection was
// taken over, and drops requests that have not come to one.
func (g *generation) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := g.active.Enter(); ok {
			defer g.active.Leave()
		}
		g.newcomers.arrived(r)
		if g.retired.Load() && r.ProtoMajor == 1 && r.Header["Upgrade"] == nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// finish gives idle connections the time for one more request and closes them, waits for every request
// and tunnel and releases the configuration. If ctx or worker_shutdown_timeout ends before, everything
// is cut off.
func (g *generation) finish(ctx context.Context) {
	if t := g.engine.Settings().ShutdownTimeout; t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t)
		defer cancel()
	}
	for _, v := range g.views {
		v.Close()
	}
	g.serving.Wait()
	g.retired.Store(true)
	g.newcomers.waitIdle(ctx)
	for _, server := range g.servers {
		server.SetKeepAlivesEnabled(false) // each connection's next response is its last
	}
	g.newcomers.wait(ctx)
	var shutdown sync.WaitGroup
	for _, server := range g.servers {
		shutdown.Go(func() {
			if server.Shutdown(ctx) != nil {
				server.Close()
			}
		})
	}
	shutdown.Wait()
	stop := context.AfterFunc(ctx, g.end)
	defer stop()
	_ = g.active.Drain(context.Background())
	g.end()
	g.engine.Close()
}
