package simulate

import (
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// serveHTTP2 serves a connection of a gateway that speaks h2c to its targets.
func (t *target) serveHTTP2(c *Conn) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	once := &single{conns: make(chan net.Conn, 1), closed: make(chan struct{}), addr: c.LocalAddr()}
	once.conns <- c
	server := &http.Server{Handler: http.HandlerFunc(t.serveStream), ErrorLog: discardLog, Protocols: &protocols,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				once.Close()
			}
		}}
	_ = server.Serve(once)
}

// single is a listener of one connection.
type single struct {
	conns  chan net.Conn
	closed chan struct{} // when the connection is
	end    sync.Once
	addr   net.Addr
}

// Accept returns the connection, and then waits for its end.
func (s *single) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (s *single) Close() error {
	s.end.Do(func() { close(s.closed) })
	return nil
}

// Addr returns the address of the target.
func (s *single) Addr() net.Addr { return s.addr }

// serveStream serves one request over HTTP/2.
func (t *target) serveStream(w http.ResponseWriter, req *http.Request) {
	t.streams.Add(1)
	defer t.streams.Done()
	if !t.based(req) {
		return
	}
	token, ok := tokenOf(req.RequestURI)
	plan := t.world.exchanges[token]
	switch {
	case ok && token == 0:
		t.noteHalf(req)
		if req.Header.Get(checkField) == "" || !t.silent(req.Context().Done()) {
			w.WriteHeader(t.checkStatus(req))
		}
		return
	case plan == nil:
		t.world.journal.Break("request", "%s got a request for %q", t.plan.Addr, req.RequestURI)
		return
	}
	s := &Sight{Target: t.plan.Addr, At: time.Now(), Line: req.Method + " " + req.RequestURI, Header: req.Header.Clone()}
	t.world.journal.sight(token, s)
	t.note(token, "attempt %d: %s", s.Attempt, s.Line)
	defer func() { s.Ended = time.Now() }()
	r := plan.response(s.Attempt)
	if r.Early {
		t.streams.Go(func() { t.readBody(req, plan, s) }) // until the handler's end, which ends the body
	} else {
		t.readBody(req, plan, s)
	}
	t.writeStream(w, req, plan, r, s)
}

// writeStream is writeResponse over HTTP/2.
func (t *target) writeStream(w http.ResponseWriter, req *http.Request, plan *ExchangePlan, r *ResponsePlan, s *Sight) {
	for range r.Interim {
		w.Header().Set("Link", "</"+strconv.Itoa(int(plan.Token))+">")
		w.Header().Set("Content-Length", "0") // makes net/http copy the map, which it may still encode when the stream has ended
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Del("Content-Length")
	}
	t.world.sleep(r.Delay)
	if r.Never {
		<-t.world.ended
	}
	if r.Never || r.Garbage {
		t.world.journal.faults.Add("no response", 1)
		s.Reset = r.Garbage && req.Context().Err() == nil // or the gateway has ended the stream, or the connection
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	for _, f := range r.fields() {
		h.Set(f[0], f[1])
	}
	h.Set("X-Token", strconv.Itoa(int(plan.Token)))
	h.Set("X-Attempt", strconv.Itoa(s.Attempt))
	for i, f := range plan.Header {
		h.Set("X-Back-"+strconv.Itoa(i), f[1])
	}
	bodyless := req.Method == http.MethodHead || r.Status == 204 || r.Status == 304
	for _, f := range r.Trailer {
		if !bodyless { // else net/http's transport waits for a body of that Content-Length
			h.Add("Trailer", f[0])
		}
	}
	if r.Framing == ByLength && r.Status != 204 {
		h.Set("Content-Length", strconv.FormatInt(r.wire(plan, s.Attempt).Size(), 10))
	}
	w.WriteHeader(r.Status)
	if !bodyless {
		t.writeStreamBody(w, plan, r, s)
	}
	if !r.Forget && !bodyless {
		for _, f := range r.Trailer {
			h.Set(f[0], f[1])
		}
	}
	s.Responded = true
	t.note(plan.Token, "responded %d with %d bytes", r.Status, r.Body.Length)
}

// writeStreamBody writes a body in pieces, and panics where it breaks off.
func (t *target) writeStreamBody(w http.ResponseWriter, plan *ExchangePlan, r *ResponsePlan, s *Sight) {
	content := r.wire(plan, s.Attempt)
	for at, size := int64(0), content.Size(); at < size; {
		n := min(size-at, 32<<10)
		if r.Body.Piece > 0 {
			n = min(n, int64(r.Body.Piece))
		}
		if r.Body.Cut && at+n > r.Body.CutAt {
			t.world.journal.faults.Add("body cut by a reset stream", 1)
			s.BrokeOff = true
			panic(http.ErrAbortHandler)
		}
		if _, err := w.Write(content.Bytes(at, at+n)); err != nil {
			s.BrokeOff = true
			panic(http.ErrAbortHandler)
		}
		_ = http.NewResponseController(w).Flush()
		at += n
		t.world.sleep(r.Body.Pause)
	}
}
