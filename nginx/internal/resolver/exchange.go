package resolver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	udpSize    = 4096            // of a response; without EDNS a name server sends at most 512
	tcpTimeout = 5 * time.Second // for a connection and its response
)

// exchange is the messages of one lookup. Its fields are used by one goroutine; readers only send to received.
type exchange struct {
	*Resolver
	ctx       context.Context
	questions []*question
	server    int              // the current one
	failed    int              // how many servers could not be reached since the last timer
	conns     map[int]net.Conn // over UDP, by server: each has a port of its own, which the kernel chooses
	received  chan message
	readers   sync.WaitGroup
}

// message is what a name server has sent, or why it can't.
type message struct {
	data   []byte
	err    error
	server int
	tcp    bool
}

// exchange sends questions until all have a response, and returns the last one of these. It returns an error only if ctx ends.
func (r *Resolver) exchange(ctx context.Context, questions []*question, first int) (last *response, err error) {
	ctx, cancel := context.WithCancel(ctx)
	x := &exchange{Resolver: r, ctx: ctx, questions: questions, server: first, conns: map[int]net.Conn{}, received: make(chan message)}
	defer x.readers.Wait()
	defer x.close()
	defer cancel()
	x.send()
	timer := time.NewTimer(resendAfter)
	defer timer.Stop()
	for {
		select {
		case m := <-x.received:
			if m.err != nil {
				x.unreachable(m)
				continue
			}
			if got := x.accept(m); got != nil {
				last = got
			}
			if x.complete() {
				return last, nil
			}
		case <-timer.C:
			x.failed = 0
			x.nextServer()
			timer.Reset(resendAfter)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (x *exchange) complete() bool {
	for _, q := range x.questions {
		if q.response == nil {
			return false
		}
	}
	return true
}

func (x *exchange) close() {
	for _, c := range x.conns {
		c.Close()
	}
}

// nextServer sends what has no response to the next server.
func (x *exchange) nextServer() {
	x.server = (x.server + 1) % len(x.o.Servers)
	x.send()
}

// unreachable continues with the next server, unless all have failed: then with the timer.
func (x *exchange) unreachable(m message) {
	x.o.Log(fmt.Sprintf("%s, resolver: %s", m.err, x.o.Servers[m.server]))
	if c := x.conns[m.server]; c != nil && !m.tcp {
		c.Close()
		delete(x.conns, m.server)
	}
	if x.failed++; m.server == x.server && x.failed < len(x.o.Servers) {
		x.nextServer()
	}
}

// send sends the questions without a response to the current server.
func (x *exchange) send() {
	for _, q := range x.questions {
		switch {
		case q.response != nil:
		case q.overTCP:
			x.sendTCP(q, x.server)
		case !x.sendUDP(q):
			return
		}
	}
}

// sendUDP reports whether the server can be sent more.
func (x *exchange) sendUDP(q *question) bool {
	c := x.conns[x.server]
	var err error
	if c == nil {
		if c, err = x.dial(x.ctx, "udp", x.o.Servers[x.server]); err == nil {
			x.conns[x.server] = c
			server := x.server
			x.readers.Go(func() { x.readUDP(c, server) })
		}
	}
	if err == nil {
		_, err = c.Write(q.message)
	}
	if err != nil {
		failed := message{err: err, server: x.server}
		x.readers.Go(func() { x.report(failed) })
	}
	return err == nil
}

// report passes a message to the exchange unless it has ended.
func (x *exchange) report(m message) (ok bool) {
	select {
	case x.received <- m:
		return true
	case <-x.ctx.Done():
		return false
	}
}

func (x *exchange) readUDP(c net.Conn, server int) {
	for {
		data := make([]byte, udpSize)
		n, err := c.Read(data)
		if errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
			return // the exchange has closed it
		}
		if !x.report(message{data: data[:n], err: err, server: server}) || err != nil {
			return
		}
	}
}

func (x *exchange) sendTCP(q *question, server int) {
	x.readers.Go(func() {
		data, err := x.overTCP(q.message, x.o.Servers[server])
		x.report(message{data: data, err: err, server: server, tcp: true})
	})
}

// overTCP exchanges one message (RFC 1035 section 4.2.2).
func (x *exchange) overTCP(query []byte, server string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(x.ctx, tcpTimeout)
	defer cancel()
	c, err := x.dial(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	data := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err = io.ReadFull(c, data)
	return data, err
}

// accept returns the response in a message if it is one to a question, else nil.
func (x *exchange) accept(m message) *response {
	resp, err := parse(m.data)
	if err != nil {
		x.o.Log(fmt.Sprintf("invalid %s DNS response: %s", m.network(), err))
		return nil
	}
	if resp.code == FormatError || resp.code > Refused {
		x.o.Log(fmt.Sprintf("DNS error (%d: %s), query id:%d", resp.code, codeText(resp.code), resp.id))
		return nil
	}
	q := x.questionOf(resp)
	switch {
	case q == nil:
		x.o.Log("unexpected DNS response for " + nameOf(resp.question.Name))
		return nil
	case q.id != resp.id:
		x.o.Log(fmt.Sprintf("wrong ident %d in DNS response for %s, expect %d", resp.id, q.name, q.id))
		return nil
	case q.response != nil: // a late one of a server that was queried before
		return nil
	case resp.truncated:
		if m.tcp {
			x.o.Log("invalid TCP DNS response: it is truncated")
		} else if !q.overTCP {
			q.overTCP = true
			x.sendTCP(q, m.server)
		}
		return nil
	}
	q.response = resp
	return resp
}

func (m message) network() string {
	if m.tcp {
		return "TCP"
	}
	return "UDP"
}

// questionOf returns the question that a response repeats.
func (x *exchange) questionOf(r *response) *question {
	for _, q := range x.questions {
		if q.isOf(r) {
			return q
		}
	}
	return nil
}
