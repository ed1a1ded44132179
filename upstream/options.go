package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Protocol is what a group's targets speak. HTTP/2 is spoken by net/http's client. That of Go 1.26 locks up where a target
// opens the window of a stream beyond 2^31-1 bytes (RFC 9113 section 6.9.1): no exchange with any target of the same Transport
// ends then, by whatever timeout, and none gives its place back. golang.org/x/net v0.62.0 has the mend for net/http's next
// version. Until then HTTP2 and H2C are for targets that do not attack their gateway. Nor does that client end a stream
// whose target has responded by a header alone, with a status below 300, and neither accepts the rest of the request's body nor
// resets the stream: it is open beyond its exchange, until another one of its connection ends.
type Protocol int

const (
	// HTTP1 is HTTP/1.1.
	HTTP1 Protocol = iota
	// HTTP2 is HTTP/2 by ALPN where the target offers it, else HTTP/1.1. It needs
	// https.
	HTTP2
	// H2C is HTTP/2 without TLS, by prior knowledge (RFC 9113 section 3.3). It
	// needs http.
	H2C
)

// Options configures a Group. The zero value is a round robin over cleartext
// HTTP/1.1.
type Options struct {
	// Name stands in errors and records where no target was chosen.
	Name string
	// Scheme is "http" or "https"; "" means "http".
	Scheme string
	// Balance picks among the targets; nil means RoundRobin.
	Balance Balance
	// Source delivers the targets, at the beginning and whenever they change, in
	// place of those given to New. nil means that they change with Group.Set
	// alone. Requests that come before the first list wait for it, for QueueTimeout at most: 100 of them, or Queue where
	// that is more. Others are refused at once (503), and so are those that wait when the group is closed or drained, or the
	// Source has returned.
	Source Source

	// FailStatuses are statuses that count as failures of the target, as errors
	// do (Target.MaxFails), from 200 to 999. nil means none.
	FailStatuses []int
	// FailLatency is the time to a response's header from which on the response counts
	// as a failure, without the time in which the client was still sending its request.
	// 0 means no bound.
	FailLatency time.Duration
	// Check asks each target at intervals how it is; nil means nobody asks.
	Check *Check
	// SlowStart is the time over which a target that has come back is given its
	// full share of the requests; 0 means at once.
	SlowStart time.Duration

	// MaxInFlight bounds the requests and tunnels of the whole group; 0 means no
	// bound. More are refused (503).
	MaxInFlight int
	// Queue is how many requests may wait when every target has its MaxConns; 0
	// means none: they are refused (503). They are served in the order of arrival, but
	// for one that has tried the target that is free. A request that is a part of another one, which holds a target already,
	// does not wait: the list that watchcodec's filter needs for a resumed watch.
	Queue int
	// QueueTimeout bounds the wait, that for the first list of Source included; 0 means 10 seconds.
	QueueTimeout time.Duration
	// RetryAfter is what a refused client is told; 0 means one second.
	RetryAfter time.Duration

	// Transport runs the exchanges. nil means a Transport of the group's
	// own, which adds nothing to a request (no compression) and takes no proxy
	// from the environment; what follows is for that one. One of the program's own that waits for
	// a stream of an HTTP/2 connection (http.HTTP2Config.StrictMaxConcurrentRequests) does so within
	// proxy.Options.Timeout alone: its ResponseHeaderTimeout begins behind the request.
	Transport http.RoundTripper
	// Protocol is what the targets speak. Where all streams that an HTTP/2 target allows on a connection are in use
	// (SETTINGS_MAX_CONCURRENT_STREAMS), a request is sent over another connection, and waits for none of them.
	Protocol Protocol
	// TLSConfig is for https targets: client certificates, server name, roots.
	// nil verifies the target's certificate against the system's roots and the
	// host of its address.
	TLSConfig *tls.Config
	// Dialer makes connections, from a certain local address for instance. nil
	// means one with TCP keepalive. Its Timeout does not count.
	Dialer *net.Dialer
	// DialContext makes the connections in place of Dialer: through a tunnel, or in
	// memory. It is called with "tcp" and a host and port, or with "unix" and a path,
	// and may be called by several goroutines at once. The deadline of its context is
	// DialTimeout. Neither a connection nor an error is a dial error. Over HTTP/1.1 a dial continues, for other requests,
	// when the one that it is for has left. A panic is one of that request, or is logged with slog.Default() behind it.
	// nil means Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// DialTimeout bounds the dialling of one target, and as long again its TLS
	// handshake; 0 means 10 seconds.
	DialTimeout time.Duration
	// WriteTimeout bounds the time that the target may take to accept a piece of
	// a request, to a quarter. 0 means 60 seconds, a negative value no bound. Over HTTP/2 that is also the wait
	// for a window, as long as the response has not begun, where package proxy uses a Transport of this package.
	WriteTimeout time.Duration
	// HeaderTimeout bounds the time that the target may take for the whole header of its
	// response, interim responses included, counted from the last byte of the request, to a
	// quarter. The time in which the client accepts those is not the target's, where package proxy relays
	// them. A header section that has begun before that byte was sent has the same time, from
	// its first byte on, where package proxy uses connections of its own. The stream of a HEAD over
	// HTTP/2 has to end within it, too. 0 means 60 seconds, a negative value no bound.
	HeaderTimeout time.Duration
	// PingInterval is how long an HTTP/2 connection may be silent before it is asked
	// whether anybody is there, and as long again the answer may take; then it is
	// given up. 0 means 15 seconds, a negative value never.
	PingInterval time.Duration
	// MaxIdleConns bounds the idle connections that are kept for each target; 0
	// means 128. Each holds buffers of 36 KiB.
	MaxIdleConns int
	// IdleTimeout is how long an idle connection is kept; 0 means 60 seconds.
	IdleTimeout time.Duration
	// MaxConnAge and MaxConnRequests end a connection with the first request
	// that it is too old for, or that is its last, by "Connection: close"; 0 means
	// no bound.
	MaxConnAge      time.Duration
	MaxConnRequests int
	// MaxHeaderBytes bounds the head of an answer, interim heads included; 0
	// means 64 KiB.
	MaxHeaderBytes int64
}

// withDefaults checks o and fills its defaults in.
func (o Options) withDefaults() (Options, error) {
	if err := o.checkNumbers(); err != nil {
		return o, err
	}
	if err := o.checkProtocol(); err != nil {
		return o, err
	}
	for _, status := range o.FailStatuses {
		if status < 200 || status > 999 {
			return o, fmt.Errorf("FailStatuses: %d is not from 200 to 999", status)
		}
	}
	if o.Dialer != nil && o.DialContext != nil {
		return o, errors.New("both Dialer and DialContext are set")
	}
	set(&o.Scheme, "http")
	set(&o.Balance, RoundRobin())
	set(&o.QueueTimeout, 10*time.Second)
	set(&o.RetryAfter, time.Second)
	set(&o.DialTimeout, 10*time.Second)
	set(&o.WriteTimeout, time.Minute)
	set(&o.HeaderTimeout, time.Minute)
	set(&o.PingInterval, 15*time.Second)
	set(&o.MaxIdleConns, 128)
	set(&o.IdleTimeout, time.Minute)
	set(&o.MaxHeaderBytes, 64<<10)
	if o.Check != nil {
		check, err := o.Check.withDefaults()
		if err != nil {
			return o, err
		}
		o.Check = &check
	}
	return o, nil
}

// set gives *v its default.
func set[T comparable](v *T, standard T) {
	var zero T
	if *v == zero {
		*v = standard
	}
}

func (o Options) checkNumbers() error {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"FailLatency", int64(o.FailLatency)},
		{"SlowStart", int64(o.SlowStart)},
		{"MaxInFlight", int64(o.MaxInFlight)},
		{"Queue", int64(o.Queue)},
		{"QueueTimeout", int64(o.QueueTimeout)},
		{"RetryAfter", int64(o.RetryAfter)},
		{"DialTimeout", int64(o.DialTimeout)},
		{"MaxIdleConns", int64(o.MaxIdleConns)},
		{"IdleTimeout", int64(o.IdleTimeout)},
		{"MaxConnAge", int64(o.MaxConnAge)},
		{"MaxConnRequests", int64(o.MaxConnRequests)},
		{"MaxHeaderBytes", o.MaxHeaderBytes},
	} {
		if n.value < 0 {
			return fmt.Errorf("%s is negative", n.name)
		}
	}
	return nil
}

func (o Options) checkProtocol() error {
	switch {
	case o.Scheme != "" && o.Scheme != "http" && o.Scheme != "https":
		return fmt.Errorf("scheme %q is neither http nor https", o.Scheme)
	case o.Protocol < HTTP1 || o.Protocol > H2C:
		return fmt.Errorf("unknown protocol %d", o.Protocol)
	case o.Protocol == HTTP2 && o.Scheme != "https":
		return errors.New("HTTP2 needs the scheme https; cleartext HTTP/2 is H2C")
	case o.Protocol == H2C && o.Scheme == "https":
		return errors.New("H2C needs the scheme http; HTTP/2 over TLS is HTTP2")
	}
	return nil
}
