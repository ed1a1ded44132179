package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// ListenAndServe listens on Addr and calls Serve. It returns http.ErrServerClosed after Shutdown or Close.
func (s *Server) ListenAndServe() error {
	l, err := s.listen(":http")
	if err != nil {
		return err
	}
	return s.Serve(l)
}

// ListenAndServeTLS listens on Addr and calls ServeTLS.
func (s *Server) ListenAndServeTLS(certFile, keyFile string) error {
	l, err := s.listen(":https")
	if err != nil {
		return err
	}
	defer l.Close()
	return s.ServeTLS(l, certFile, keyFile)
}

func (s *Server) listen(addr string) (net.Listener, error) {
	if s.inShutdown.Load() {
		return nil, http.ErrServerClosed
	}
	if s.Addr != "" {
		addr = s.Addr
	}
	return net.Listen("tcp", addr)
}

// ServeTLS is Serve with TLS. The files hold the certificate and its key; they may be "" if TLSConfig has a certificate, or
// a function that returns one.
func (s *Server) ServeTLS(l net.Listener, certFile, keyFile string) error {
	if err := s.prepare(); err != nil {
		return err
	}
	config := new(tls.Config)
	if s.TLSConfig != nil {
		config = s.TLSConfig.Clone()
	}
	config.NextProtos = nextProtos(config.NextProtos, s.protocols())
	given := len(config.Certificates) > 0 || config.GetCertificate != nil || config.GetConfigForClient != nil
	if !given || certFile != "" || keyFile != "" {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return s.Serve(tls.NewListener(l, config))
}

// nextProtos returns protos with those names of ALPN that p stands for, and without the others, as http.Server does.
func nextProtos(protos []string, p http.Protocols) []string {
	protos = slices.DeleteFunc(slices.Clone(protos), func(name string) bool {
		return name == "http/1.1" && !p.HTTP1() || name == "h2" && !p.HTTP2()
	})
	if p.HTTP2() && !slices.Contains(protos, "h2") {
		at := slices.Index(protos, "http/1.1")
		if at < 0 {
			at = len(protos)
		}
		protos = slices.Insert(protos, at, "h2")
	}
	if p.HTTP1() && !slices.Contains(protos, "http/1.1") {
		protos = append(protos, "http/1.1")
	}
	return protos
}

// Serve accepts connections of l, which it closes in the end, and serves each on a goroutine. Connections of crypto/tls speak
// TLS. It returns http.ErrServerClosed after Shutdown or Close, else the error of l, or that of a field.
func (s *Server) Serve(l net.Listener) error {
	original := l
	l = &closeOnce{Listener: l}
	defer l.Close()
	if err := s.prepare(); err != nil {
		return err
	}
	if !s.track(&l) {
		return http.ErrServerClosed
	}
	defer s.untrack(&l)
	ctx := context.Background()
	if s.BaseContext != nil {
		if ctx = s.BaseContext(original); ctx == nil {
			panic("server: BaseContext returned a nil context")
		}
	}
	return s.accept(l, context.WithValue(ctx, http.ServerContextKey, s.standIn))
}

// accept serves the connections of l. After a temporary error, of too many open files perhaps, it waits.
func (s *Server) accept(l net.Listener, ctx context.Context) error {
	for delay := time.Duration(0); ; {
		rwc, err := l.Accept()
		if err == nil {
			delay = 0
			s.start(ctx, rwc)
			continue
		}
		if s.inShutdown.Load() {
			return http.ErrServerClosed
		}
		if ne, ok := err.(interface{ Temporary() bool }); !ok || !ne.Temporary() {
			return err
		}
		delay = min(max(2*delay, 5*time.Millisecond), time.Second)
		s.logf("http: Accept error: %v; retrying in %v", err, delay)
		time.Sleep(delay)
	}
}

// start serves a connection, now or when it has a place.
func (s *Server) start(ctx context.Context, rwc net.Conn) {
	c := newConn(s, rwc)
	c.ctx = ctx
	addr := s.addrOf(c)
	s.mu.Lock()
	placed, todo := s.admit(c, addr)
	s.mu.Unlock()
	if placed {
		s.begin(c)
		return
	}
	s.do(todo)
}

// begin serves a connection that has a place.
func (s *Server) begin(c *conn) {
	if !c.open(c.ctx) {
		_ = c.rwc.Close()
		s.forget(c)
		return
	}
	if s.inShutdown.Load() { // Shutdown has not seen it
		c.boundFirstRequest(time.Now()) // it may have waited for its place
	}
	go c.serve()
}

// track notes a listener. It reports false if the server has been shut down.
func (s *Server) track(l *net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inShutdown.Load() {
		return false
	}
	if s.listeners == nil {
		s.listeners = map[*net.Listener]struct{}{}
	}
	s.listeners[l] = struct{}{}
	s.serving.Add(1)
	return true
}

func (s *Server) untrack(l *net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
	s.serving.Done()
}

// closeOnce is a listener that Serve and Shutdown close.
type closeOnce struct {
	net.Listener
	once sync.Once
	err  error
}

// Close closes the listener, once; further calls return the error of the first.
func (l *closeOnce) Close() error {
	l.once.Do(func() { l.err = l.Listener.Close() })
	return l.err
}
