package simulate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// runHTTP1 sends the requests over one connection as long as it is kept.
func (c *client) runHTTP1() {
	rest := c.plan.Requests
	for len(rest) > 0 {
		conn := c.dial()
		if conn == nil {
			return
		}
		n := c.converse(conn, rest)
		if !c.leavesOpen {
			conn.Close()
		}
		rest = rest[n:]
	}
}

// converse sends requests over conn until it ends, and returns how many.
func (c *client) converse(conn duplex, list []ExchangePlan) int {
	in := &byteCounter{Reader: conn}
	r := bufio.NewReader(in)
	if c.plan.Pipelined {
		return c.pipeline(conn, in, r, list)
	}
	var before *Outcome
	for i := range list {
		e := &list[i]
		c.world.sleep(e.Wait)
		o := c.world.journal.outcome(e.Token)
		o.Behind, before = before, o
		sent := make(chan bool, 1)
		go func() {
			whole := c.send(conn, e, o)
			if whole && e.HalfClose {
				c.world.journal.manners.Add("half close", 1)
				_ = conn.CloseWrite()
			}
			sent <- whole
		}()
		start := in.n - r.Buffered()
		c.holdOff(e, o)
		kept := c.receive(conn, in, r, e, o)
		o.Read = in.n - r.Buffered() - start
		if !kept || e.Body.Cut && e.Body.How == FaultSilence {
			conn.Close() // ends the sending
		}
		o.SentWhole = <-sent
		if !kept || !o.SentWhole || e.HalfClose || c.plan.Kind == HTTP10 {
			c.expectNothing(r, e, o)
			return i + 1
		}
	}
	c.stay(conn, r, &list[len(list)-1], before)
	return len(list)
}

// pipeline sends the requests without waiting for responses, and reads the responses meanwhile.
func (c *client) pipeline(conn duplex, in *byteCounter, r *bufio.Reader, list []ExchangePlan) int {
	outcomes := make([]*Outcome, len(list))
	for i := range list {
		outcomes[i] = c.world.journal.outcome(list[i].Token)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.sendPipelined(conn, list, outcomes)
	}()
	for i := range list {
		if !c.receive(conn, in, r, &list[i], outcomes[i]) {
			conn.Close()
			<-sent
			return len(list) // requests that were sent after it are not sent again
		}
	}
	if last := &list[len(list)-1].Body; last.Cut && last.How == FaultSilence {
		conn.Close() // stops sending the body of a request whose response came early
	}
	<-sent
	return len(list)
}

// expectNothing checks that no bytes follow a response.
func (c *client) expectNothing(r *bufio.Reader, e *ExchangePlan, o *Outcome) {
	if o.Err != nil && !o.Whole {
		return // the bytes are a part of the response
	}
	if e.Method == http.MethodHead && o.Status == http.StatusBadRequest {
		return // net/http refuses before it knows the method, with a text
	}
	if n := r.Buffered(); n > 0 {
		p, _ := r.Peek(min(n, 60))
		c.world.journal.Break("nothing behind", "%s #%d: %d bytes behind the response: %q", c.name, e.Token, n, p)
	}
}

// send writes a request, and reports whether all of it was written.
func (c *client) send(conn duplex, e *ExchangePlan, o *Outcome) bool {
	o.Sent = time.Now()
	_ = conn.SetWriteDeadline(o.Sent.Add(c.world.longest)) // a link may be silent
	chunked := e.Body.Chunked
	if _, err := io.WriteString(conn, requestHeader(e, c.plan.Kind)); err != nil {
		c.note(e, "header: %v", err)
		return false
	}
	c.note(e, "%s %s, body of %d bytes", e.Method, e.target(), e.Body.Length)
	if !e.hasBody() {
		return true
	}
	if !c.world.waitToSend(e, o.expectation, conn.Closed()) {
		return false
	}
	if err := c.world.sendBody(conn, &e.Body, e.requestWire(), chunked); err != nil {
		c.note(e, "body: %v", err)
		return false
	}
	if chunked {
		if _, err := io.WriteString(conn, lastChunk(withForbidden(e.Trailer, e.Forbidden), false)); err != nil {
			return false
		}
	}
	return true
}

// hasBody reports whether the request has a body, which may be empty.
func (e *ExchangePlan) hasBody() bool {
	return e.Body.Length > 0 || e.Body.Chunked || e.Method == "POST" || e.Method == "PUT"
}

// requestHeader returns the header section of a request over HTTP/1.
func requestHeader(e *ExchangePlan, kind ClientKind) string {
	var b strings.Builder
	version := "1.1"
	if kind == HTTP10 {
		version = "1.0"
	}
	fmt.Fprintf(&b, "%s %s HTTP/%s\r\nHost: gateway.test\r\n", e.Method, e.target(), version)
	for _, f := range e.Header {
		fmt.Fprintf(&b, "%s: %s\r\n", e.spell(f[0]), f[1])
	}
	for _, f := range e.requestFields() {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	if e.Key {
		b.WriteString("Idempotency-Key: k\r\n")
	}
	if e.Large > 0 {
		b.WriteString("X-Large: " + strings.Repeat("l", e.Large) + "\r\n")
	}
	if e.hasBody() {
		if e.Expect {
			b.WriteString("Expect: 100-continue\r\n")
		}
		if e.Body.Chunked {
			b.WriteString("Transfer-Encoding: chunked\r\n")
			for _, f := range e.Trailer {
				fmt.Fprintf(&b, "Trailer: %s\r\n", f[0])
			}
		} else {
			fmt.Fprintf(&b, "Content-Length: %d\r\n", e.requestWire().Size())
		}
	}
	b.WriteString("\r\n")
	return b.String()
}

// receive reads the response, and reports whether the connection is kept.
func (c *client) receive(conn duplex, in *byteCounter, r *bufio.Reader, e *ExchangePlan, o *Outcome) bool {
	defer func() {
		o.Ended = time.Now()
		c.note(e, "saw %d of attempt %d, %d bytes, whole %v, %v", o.Status, o.Attempt, o.Got, o.Whole, o.Err)
	}()
	_ = conn.SetReadDeadline(time.Now().Add(c.patience(e)))
	defer conn.SetReadDeadline(time.Time{})
	defer see(o.expectation.responded)
	for {
		in.start(r)
		resp, err := http.ReadResponse(r, &http.Request{Method: e.Method})
		o.Names = in.names(r)
		if err != nil {
			c.checkMalformed(conn, e, err)
			c.fail(o, err)
			return false
		}
		if resp.StatusCode >= 100 && resp.StatusCode < 200 {
			o.Interim++
			c.checkInterim(resp, e)
			if resp.StatusCode == http.StatusContinue {
				o.Continued = true
				see(o.expectation.continued)
			}
			continue
		}
		o.noteHeader(resp)
		see(o.expectation.responded)
		if !c.readBody(resp, e, o) {
			return false
		}
		o.Trailer = resp.Trailer
		o.ByClose = resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && e.Method != "HEAD" && o.Status != 204 && o.Status != 304
		return !resp.Close && !o.ByClose
	}
}

// fail records why the client sees no more of a response.
func (c *client) fail(o *Outcome, err error) {
	o.Err = err
	if o.LeftAlone = errors.Is(err, os.ErrDeadlineExceeded); o.LeftAlone {
		c.world.journal.faults.Add("client left", 1)
	}
}

// checkInterim checks that an interim response belongs to the request.
func (c *client) checkInterim(resp *http.Response, e *ExchangePlan) {
	if resp.StatusCode == 103 && resp.Header.Get("Link") != fmt.Sprintf("</%d>", e.Token) {
		c.world.journal.Break("belongs", "%s #%d: an interim response of another request: %v", c.name, e.Token, resp.Header)
	}
}

// noteHeader records the header of a final response.
func (o *Outcome) noteHeader(resp *http.Response) {
	o.Responses++
	o.Status, o.Header = resp.StatusCode, resp.Header
	if n, err := strconv.Atoi(resp.Header.Get("X-Attempt")); err == nil {
		o.Attempt = n
	}
}

// readBody reads a response's body and compares it with the expected one.
func (c *client) readBody(resp *http.Response, e *ExchangePlan, o *Outcome) bool {
	var check *Checker
	var to io.Writer = io.Discard
	if e.Page != PageNone {
		to = collector{o}
	}
	if o.Attempt >= 0 {
		if m := c.world.passage(e, c.plan.Kind).response(o.Attempt); m.changed || m.loose {
			o.Collected = true
			to = collector{o}
		} else {
			check = &Checker{Content: e.responseBody(o.Attempt)}
			to = check
		}
	}
	var err error
	buf := make([]byte, 4<<10)
	for paused := 0; err == nil; {
		var n int
		n, err = resp.Body.Read(buf)
		_, _ = to.Write(buf[:n])
		o.Got += int64(n)
		if e.ReadPause > 0 && n > 0 && paused < 20 {
			paused++
			time.Sleep(e.ReadPause)
		}
	}
	if check != nil {
		o.Bad = check.Err()
	}
	if err != io.EOF {
		c.fail(o, err)
		return false
	}
	o.Whole = true
	return true
}
