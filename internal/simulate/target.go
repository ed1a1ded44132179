package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// target is a server of HTTP/1.1 behind the gateway, which follows the plans of the
// exchanges.
type target struct {
	world   *world
	plan    *TargetPlan
	index   int
	ln      *Listener
	wg      sync.WaitGroup
	streams sync.WaitGroup // handlers of streams, and readers of bodies that outlast them
}

// startTarget listens and serves.
func startTarget(w *world, i int) *target {
	plan := &w.plan.Targets[i]
	t := &target{world: w, plan: plan, index: i, ln: w.network.Listen(plan.Addr, 2)}
	t.wg.Go(func() {
		for {
			c, err := t.ln.Accept()
			if err != nil {
				return
			}
			t.wg.Go(func() { t.serve(c.(*Conn)) })
		}
	})
	return t
}

// close resets all connections, and waits for the goroutines.
func (t *target) close() {
	t.ln.Close()
	for _, c := range t.world.network.endsAt(t.plan.Addr) {
		c.Reset()
	}
	t.wg.Wait()
	t.streams.Wait()
}

// serve serves the requests of one connection.
func (t *target) serve(c *Conn) {
	defer c.Close()
	if t.plan.ByFrames {
		t.serveFrames(c)
		return
	}
	if t.world.plan.Gateway.H2Targets {
		t.serveHTTP2(c)
		return
	}
	in := &endNoter{Reader: c}
	r := bufio.NewReader(in)
	opened := time.Now()
	client, ok := t.introduced(in, r)
	if !ok {
		return
	}
	for kept := false; ; kept = true {
		if d := t.plan.IdleClose; d > 0 {
			_ = c.SetReadDeadline(time.Now().Add(d))
		}
		if _, err := r.Peek(1); err != nil {
			return
		}
		_ = c.SetReadDeadline(time.Time{})
		if !t.exchange(c, in, r, Sight{Opened: opened, Kept: kept, From: c.RemoteAddr().String(), Client: client, Response: c.nextResponse()}) {
			return
		}
	}
}

// exchange serves one request, and reports whether the connection is kept. seen describes the connection.
func (t *target) exchange(c *Conn, in *endNoter, r *bufio.Reader, seen Sight) bool {
	in.start(r)
	req, err := http.ReadRequest(r)
	seen.Names = in.names(r)
	if err != nil {
		if in.err == nil {
			t.world.journal.Break("request", "%s read what is no request: %v", t.plan.Addr, err)
		}
		return false
	}
	if !t.based(req) {
		return false
	}
	token, ok := tokenOf(req.RequestURI)
	if !ok {
		t.world.journal.Break("request", "%s got a request for %q", t.plan.Addr, req.RequestURI)
		return false
	}
	if watch := listedFor(req.URL.Path); watch > 0 {
		return t.respondToListing(c, r, req, watch)
	}
	if token == 0 { // a check, or the probe at the end
		t.noteHalf(req)
		t.ownConnection(seen.Client, req.Header.Get(checkField) != "")
		return t.respondToCheck(c, req)
	}
	plan := t.world.exchanges[token]
	if plan == nil {
		t.world.journal.Break("request", "%s got a request with the unknown token %d", t.plan.Addr, token)
		return false
	}
	s := &seen
	s.Target, s.At, s.Line, s.Header = t.plan.Addr, time.Now(), req.Method+" "+req.RequestURI, req.Header
	t.world.journal.sight(token, s)
	t.note(token, "attempt %d: %s", s.Attempt, s.Line)
	defer func() { s.Ended = time.Now() }()
	if req.Header.Get("Upgrade") != "" {
		return t.upgrade(c, r, req, plan, s)
	}
	return t.respond(c, r, req, plan, s)
}

// respondToCheck responds to a check, or to the probe at the end.
func (t *target) respondToCheck(c *Conn, req *http.Request) bool {
	if req.Header.Get(checkField) != "" && t.silent(c.closed) {
		return false
	}
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d Checked\r\nContent-Length: 0\r\n\r\n", t.checkStatus(req))
	return err == nil
}

// silent waits for the end of an illness in which checks get no response, and reports whether there was one.
func (t *target) silent(gone <-chan struct{}) bool {
	if !t.world.ill(t.index, IllSilent) {
		return false
	}
	select {
	case <-t.world.ended:
	case <-gone:
	}
	return true
}

// checkStatus returns the status of the response to a check, 200 for the probe.
func (t *target) checkStatus(req *http.Request) int {
	switch {
	case req.Header.Get(checkField) == "":
		t.world.journal.noteProbe(t.plan.Addr)
		return http.StatusOK
	case t.world.ill(t.index, IllStatus):
		return checkBad + t.index
	}
	return checkGood + t.index
}

// note adds a line about an exchange to the timeline.
func (t *target) note(token uint32, format string, args ...any) {
	t.world.journal.Note(fmt.Sprintf("%s #%d", strings.TrimSuffix(t.plan.Addr, ":80"), token), format, args...)
}

// respond reads the body and writes the response: one after the other, or concurrently if
// the plan says so.
func (t *target) respond(c *Conn, in *bufio.Reader, req *http.Request, plan *ExchangePlan, s *Sight) bool {
	response := plan.response(s.Attempt)
	if s.Kept && response.Stale != NotStale {
		t.goStale(c, response, s)
		return false
	}
	read := make(chan bool, 1)
	readBody := func() {
		if req.Header.Get("Expect") != "" && !response.Early {
			s.Wrote = true
			t.requestBody(c, req, plan.Token, response)
		}
		read <- t.readBody(req, plan, s)
	}
	if response.Early {
		go readBody()
	} else {
		readBody()
	}
	if !t.writeResponse(c, req, plan, response, s) {
		c.Close() // ends a read of the body
		<-read
		return false
	}
	if !response.Close && response.Framing != ByClose {
		whole := <-read
		if !response.Early {
			t.noneWaits(c, in, response, s)
		}
		return whole && (response.Unasked == 0 || t.unasked(c, in, response))
	}
	t.linger(c, response, s, in)
	// Read the bytes that still arrive for a moment, so that the end is no reset.
	_ = c.CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	<-read
	_, _ = io.Copy(io.Discard, onlyReader{c})
	return false
}

type onlyReader struct{ io.Reader }

// readBody reads and checks the body, and reports whether its end was read.
func (t *target) readBody(req *http.Request, plan *ExchangePlan, s *Sight) bool {
	check := &Checker{Content: plan.requestBody()}
	n, err := plan.readRequest(check, req)
	s.Got, s.Bad, s.Whole, s.Trailer, s.ReadEnd = check.Got, check.Err(), err == nil, req.Trailer, time.Now()
	t.note(plan.Token, "read %d bytes of the body, %v", n, err)
	return err == nil
}

// writeResponse writes the plan's response, and reports whether the connection can be used again.
func (t *target) writeResponse(c *Conn, req *http.Request, plan *ExchangePlan, r *ResponsePlan, s *Sight) bool {
	for range r.Interim {
		if r.hintsBeside(req) {
			break // they were sent before
		}
		s.Wrote = true
		if _, err := io.WriteString(c, r.interim(plan.Token)); err != nil {
			return false
		}
	}
	t.world.sleep(r.Delay)
	switch {
	case r.Never:
		t.world.journal.faults.Add("no response", 1)
		<-t.world.ended
		return false
	case r.Garbage:
		t.world.journal.faults.Add("garbage", 1)
		s.Wrote = true
		_, _ = io.WriteString(c, "this is no response\r\n\r\n")
		return false
	}
	bodyless := req.Method == http.MethodHead || r.Status == 204 || r.Status == 304
	s.Wrote = true
	if r.Odd > 0 && !bodyless {
		return t.respondOddly(c, plan, r, s)
	}
	if err := t.drip(c, responseHeader(plan, r, s.Attempt, bodyless), r, bodyless); err != nil {
		t.note(plan.Token, "header: %v", err)
		return false
	}
	if !bodyless {
		if err := t.writeBody(c, plan, r, s); err != nil {
			s.BrokeOff = errors.Is(err, errCut) // not because the gateway has closed the connection
			t.note(plan.Token, "body broke off: %v", err)
			return false
		}
	}
	s.Responded = true
	t.note(plan.Token, "responded %d with %d bytes", r.Status, r.Body.Length)
	if r.Behind > 0 {
		t.world.journal.faults.Add("bytes behind a response", 1)
		_, _ = io.WriteString(c, strings.Repeat("x", r.Behind))
		return false
	}
	return true
}

// responseHeader returns the header section of a final response.
func responseHeader(plan *ExchangePlan, r *ResponsePlan, attempt int, bodyless bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nX-Token: %d\r\nX-Attempt: %d\r\n", r.Status, http.StatusText(r.Status), plan.Token, attempt)
	for i, f := range plan.Header {
		fmt.Fprintf(&b, "%s: %s\r\n", plan.spell(fmt.Sprintf("X-Back-%d", i)), f[1])
	}
	for _, f := range r.fields() {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	switch {
	case r.Status == 204:
	case r.Framing == Chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
		for _, f := range r.Trailer {
			fmt.Fprintf(&b, "Trailer: %s\r\n", f[0])
		}
	case r.Framing == ByLength:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", r.wire(plan, attempt).Size())
	}
	if r.Close || r.Framing == ByClose && !bodyless {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	return b.String()
}

var discardLog = log.New(io.Discard, "", 0)

var errCut = errors.New("cut, as planned")

// writeBody writes a response's body to its end.
func (t *target) writeBody(c *Conn, plan *ExchangePlan, r *ResponsePlan, s *Sight) error {
	content := r.wire(plan, s.Attempt)
	if err := t.world.sendBody(c, &r.Body, content, r.Framing == Chunked); err != nil {
		return err
	}
	if r.Framing != Chunked {
		return nil
	}
	_, err := io.WriteString(c, lastChunk(withForbidden(r.Trailer, r.Forbidden), r.Forget))
	return err
}

// lastChunk returns the end of a chunked body.
func lastChunk(trailer [][2]string, forget bool) string {
	var b strings.Builder
	b.WriteString("0\r\n")
	if !forget {
		for _, f := range trailer {
			fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
		}
	}
	b.WriteString("\r\n")
	return b.String()
}

// sendBody writes a body as planned, without the end of a chunked one.
func (w *world) sendBody(c duplex, plan *BodyPlan, content body, chunked bool) error {
	for at, size := int64(0), content.Size(); at < size; {
		n := size - at
		if plan.Piece > 0 {
			n = min(n, int64(plan.Piece))
		}
		n = min(n, 64<<10)
		cut := plan.Cut && at+n > plan.CutAt
		if cut {
			n = plan.CutAt - at
		}
		piece := content.Bytes(at, at+n)
		if chunked && n > 0 {
			piece = append(append([]byte(strconv.FormatInt(n, 16)+"\r\n"), piece...), '\r', '\n')
		}
		if _, err := c.Write(piece); err != nil {
			return err
		}
		if at += n; cut {
			return w.cut(c, plan.How)
		}
		w.sleep(plan.Pause)
	}
	return nil
}

// cut ends a body that is not whole.
func (w *world) cut(c duplex, how FaultKind) error {
	w.journal.faults.Add("body cut by "+how.String(), 1)
	switch how {
	case FaultReset:
		c.Reset()
	case FaultSilence:
		select {
		case <-w.ended:
		case <-c.Closed():
		}
		c.Reset()
	default:
		_ = c.CloseWrite()
	}
	return errCut
}

// tokenOf returns the token that a request target begins with.
func tokenOf(uri string) (uint32, bool) {
	if listedFor(uri) > 0 {
		return 0, true // no request of a client's
	}
	digits := strings.TrimPrefix(strings.TrimPrefix(uri, kubePath), resumedPath)
	digits = strings.TrimLeft(digits, "/")
	if i := strings.IndexAny(digits, "/?"); i >= 0 {
		digits = digits[:i]
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err == nil
}

// endNoter records why nothing more can be read: a request that breaks off looks like a
// malformed one.
type endNoter struct {
	io.Reader
	tap
	err error
}

// Read records a failure.
func (n *endNoter) Read(p []byte) (int, error) {
	k, err := n.Reader.Read(p)
	n.keep(p[:k])
	if err != nil {
		n.err = err
	}
	return k, err
}
