package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/bound"
)

// Protocol is the protocol that a group's targets speak.
//
// HTTP/2 is run by net/http's client. That of Go 1.26 does not end a stream whose target has sent a response without a body,
// with a status below 300, and neither accepts the rest of the request's body nor resets the stream. The stream is open after
// its exchange, until another stream of its connection ends.
//
// A target that opens the window of a stream beyond 2^31-1 bytes ends its connection, with all exchanges over it
// (RFC 9113 section 6.9.1).
type Protocol int

const (
	// HTTP1 is HTTP/1.1.
	HTTP1 Protocol = iota
	// HTTP2 is HTTP/2 if the target offers it by ALPN, or else HTTP/1.1. It requires
	// the scheme https.
	HTTP2
	// H2C is HTTP/2 without TLS, by prior knowledge (RFC 9113 section 3.3). It
	// requires the scheme http.
	H2C
)

// Options configures a Group. The zero value is a round robin over cleartext
// HTTP/1.1. Times are as package culvert says: 0 is the default, a negative bound is none.
type Options struct {
	// Name is the group's name. Errors and records have it in place of a target's address
	// if no target was picked.
	Name string
	// Scheme is "http" or "https", for targets whose own Scheme is ""; "" means "http".
	Scheme string
	// Balance selects a target for each request; nil means RoundRobin.
	Balance Balance
	// Source delivers the targets, in place of those given to New: a first list, and
	// another one each time they change. nil means that only Group.Set changes them.
	//
	// Requests received before the first list wait for it, for QueueTimeout at most: 100 of
	// them, or Queue if that is more. Others are refused at once (503), and so are the
	// waiting ones when the group is closed or drained, or when the Source has returned.
	Source Source

	// FailStatuses are the status codes, from 200 to 999, that count as failures of the
	// target, as errors do (Target.MaxFails). nil means none.
	FailStatuses []int
	// FailKinds are the kinds of errors that count as failures of the target; nil means all those that a
	// target may have caused (culvert.Error.TargetSide). Errors of other kinds count neither as failures nor
	// as successes. culvert.Unknown stands for an Outcome.Err that is not a *culvert.Error.
	//
	// With DialFailed alone, for instance, no client can take a target out by a request that the
	// target does not survive, or does not respond to in time; but neither does a dial that times
	// out, which is a Timeout, so a Check should find that. Envoy distinguishes such errors by
	// split_external_local_origin_errors.
	FailKinds []culvert.ErrorKind
	// FailLatency is the time to a response's header from which the response counts as
	// a failure. The time in which the client is still sending its request is not included.
	// 0 means no bound.
	FailLatency time.Duration
	// Check configures active health checks; nil means none.
	Check *Check
	// FailRate is the share of a target's requests, from 0 to 1, that takes it out if they fail: at a failure, if
	// at least FailMinRequests requests have ended within FailWindow and at least that share of them have failed. It
	// applies beside Target.MaxFails, whose zero value then sets no number of failures. A target that is out
	// comes back as MaxFails says, and begins without outcomes. Requests whose outcome does not count (Outcome) are not
	// among them. 0 means no rate.
	//
	// A rate keeps a target that gets many requests from being taken out by the few that fail everywhere. It
	// is Envoy's failure_percentage_threshold, but counted at each failure, not at intervals.
	FailRate float64
	// FailWindow is the time over which FailRate counts, in tenths: the last tenth is the one that is not
	// over yet. 0 means 10 seconds.
	FailWindow time.Duration
	// FailMinRequests is the least number of requests of a target within FailWindow for which FailRate counts; 0 means 10.
	FailMinRequests int
	// MaxFailTimeout, if it is longer than a target's FailTimeout, lets the time for which failures take
	// that target out grow up to it: the second time in a row it is out for twice its FailTimeout, and so on. A request
	// that is let through and fails is one more time. Each FailTimeout for which the target has then been back is
	// one time less, and checks that bring the target back begin anew. The time within which failures
	// count remains FailTimeout. 0 means that a target is out for its FailTimeout each time, as in nginx.
	//
	// It keeps a target that remains broken from getting a client's request every FailTimeout. It is Envoy's
	// base_ejection_time, times the number of ejections, up to max_ejection_time.
	MaxFailTimeout time.Duration
	// MaxEjected is the share of the group's targets, from 0 to 1, that failures may take out at a time
	// (Target.MaxFails); Down targets do not count for it. The number is rounded down, but one target may
	// always be taken out, except the last: the only target that is available. Failures of a target that may
	// not be taken out count, so that its next failure takes it out when another target is back. If Set or a
	// check leaves no target that is available, or more of them out than the share allows, those whose last
	// failures are the oldest get requests again.
	//
	// 0 means all but the last available target. 1 means all: requests then fail (503) when each
	// target has failed, as in nginx; only the single target of a group is still never taken out.
	//
	// MaxEjected is what keeps clients, and a single URL that fails everywhere, from taking out all
	// targets for all clients. It is Envoy's max_ejection_percent, whose default is 10 %. Checks are not bound by it.
	MaxEjected float64
	// PanicThreshold is the share of the group's targets, from 0 to 1, below which health does not count: if
	// fewer are available, requests are sent to all but the Down ones, so that the few that are left do not get the
	// requests of all the others and fail, too. Down targets do not count for it. A target that failures have
	// taken out is not available until a request has succeeded; backups count, and get requests as otherwise.
	//
	// 0 means that health always counts. It is Envoy's healthy_panic_threshold, whose default is 50 %. With
	// a threshold, requests are also sent to targets whose checks have failed: leave it at 0 where
	// that does harm, for instance where a check keeps clients from stale data.
	PanicThreshold float64
	// SlowStart is the time over which the share of a target that has recovered grows to
	// its full share of the requests; 0 means that it gets that at once.
	SlowStart time.Duration

	// MaxInFlight bounds the requests and tunnels of the whole group; 0 means no
	// bound. Requests above it are refused (503).
	MaxInFlight int
	// Queue is how many requests may wait when every target has its MaxConns; 0
	// means none. Further ones are refused (503). They are served in the order of arrival,
	// except that a request which has tried the free target is passed over. A request that
	// is part of another one, which holds a target already, does not wait: the list that
	// watchcodec's filter requests for a resumed watch.
	Queue int
	// QueueTimeout bounds the wait, including that for the first list of Source; 0 means 10 seconds.
	QueueTimeout time.Duration
	// RetryAfter is the Retry-After of refused requests, and of those for which no target is available; 0 means one second.
	RetryAfter time.Duration

	// Transport runs the exchanges. nil means a Transport of the group's own, which adds
	// nothing to a request (no compression) and uses no proxy from the environment. The
	// options below configure that one.
	//
	// If a transport of the program's own waits for a stream of an HTTP/2 connection
	// (http.HTTP2Config.StrictMaxConcurrentRequests), only proxy.Options.Timeout bounds that
	// wait: the transport's ResponseHeaderTimeout begins after the request was sent.
	Transport http.RoundTripper
	// Protocol is the protocol that the targets speak. If all streams that an HTTP/2 target
	// allows on a connection (SETTINGS_MAX_CONCURRENT_STREAMS) are in use, a request does not
	// wait for one of them, but is sent over another connection.
	Protocol Protocol
	// TLSConfig configures TLS to https targets: client certificates, server name, roots.
	// nil means that a target's certificate is verified against the system's roots and the
	// host of the target's address.
	TLSConfig *tls.Config
	// Dialer makes the connections, for instance from a certain local address. nil
	// means one with TCP keepalive. Its Timeout is ignored: see DialTimeout.
	Dialer *net.Dialer
	// DialContext makes the connections in place of Dialer, for instance through a tunnel or
	// in memory; nil means Dialer. It is called with "tcp" and a host and port, or with
	// "unix" and a path, with a context that ends after DialTimeout. It must be safe for
	// concurrent use. If it returns neither a connection nor an error, that is a dial error.
	//
	// Over HTTP/1.1 a dial continues, for other requests, when its request has ended. A panic
	// is passed on to the request, or logged with slog.Default() if that has ended. A panic of
	// a connection that it returns is passed on as well, or, on a goroutine of the Transport's, logged and a
	// failure of the request of Kind Internal.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// AllowAddr, if not nil, reports whether a connection may be made to an address, an IPv4 one as such. It is called for each
	// address to which the name of a target resolves, just before the connection is made, so that no other resolution can follow;
	// unix sockets are not allowed. If none is allowed, the failure has the Kind Forbidden (403), which does not count for the
	// target. Active checks are bound by it, too. Redirects are responses as others: no connection is made because of one. It
	// can't be set with DialContext, nor with a Transport but an *upstream.Transport that has an AllowAddr itself. It must be safe for concurrent use. PublicAddr keeps targets that clients name out of private networks.
	AllowAddr func(netip.Addr) bool
	// ProxyProtocol makes each connection begin with a header of the PROXY protocol, before TLS, that names the client
	// and the address at which the client's connection was accepted; 0 means none. The client is filters.ClientAddr, so one that
	// filters.RealIP has found behind trusted proxies, whose port is 0. Connections of health checks, and for requests without a
	// client, are those of the gateway itself: LOCAL in version 2, UNKNOWN in version 1.
	//
	// A connection carries the requests of one client only, so that the others' are not taken for its own: it
	// is kept for further requests that have the same header, which are those of the same connection of the client, or, behind
	// trusted proxies, of the same address. MaxIdleConns bounds those of all clients together: the
	// one that was idle longest is closed. RoundTrip of the Transport makes a connection for each request, which has
	// "Connection: close". Checks of another port (Check.Port) have no header.
	//
	// The target must expect the header, and accept it from this host alone: a client that can reach the target could name any
	// address. Protocol must be HTTP1, since requests of all clients share the connections of HTTP/2.
	ProxyProtocol ProxyProtocol
	// DialTimeout bounds the time to make a connection to a target; its TLS handshake has
	// the same time again. 0 means 10 seconds.
	DialTimeout time.Duration
	// WriteTimeout bounds the time in which the target must accept a piece of a request;
	// it may be exceeded by up to a quarter. 0 means 60 seconds. If
	// package proxy uses a Transport of this package, it also bounds the wait for an HTTP/2
	// window until the response begins.
	WriteTimeout time.Duration
	// HeaderTimeout bounds the time in which the target must send the whole header of its
	// response, interim responses included, counted from the last byte of the request; it may
	// be exceeded by up to a quarter. 0 means 60 seconds.
	//
	// If package proxy relays interim responses, the time in which the client accepts them
	// does not count. If package proxy uses connections of its own, a header section that
	// begins before the last byte of the request is sent has the same time from its first
	// byte. The stream of a HEAD over HTTP/2 must end within the time, too.
	HeaderTimeout time.Duration
	// PingInterval is how long an HTTP/2 connection may be silent before a PING is sent; the
	// target must respond within the same time, or the connection is closed. 0 means 15
	// seconds, a negative value means that no PING is sent.
	//
	// Servers of gRPC take pings for abuse that arrive more often than every 5 minutes while nothing is sent, and end the
	// connection with its streams (GOAWAY, ENHANCE_YOUR_CALM; keepalive.EnforcementPolicy of grpc-go): for streams
	// that may be silent, set more than that.
	PingInterval time.Duration
	// MaxIdleConns bounds the idle connections that are kept for each target; 0
	// means 128. Each holds buffers of 36 KiB.
	MaxIdleConns int
	// IdleTimeout is how long an idle connection is kept; 0 means 60 seconds.
	IdleTimeout time.Duration
	// MaxConnAge and MaxConnRequests limit the age and the number of requests of a
	// connection. The first request at that age, or the last one of that number, is sent
	// with "Connection: close". 0 means no limit.
	MaxConnAge      time.Duration
	MaxConnRequests int
	// MaxHeaderBytes bounds the size of a response's header, interim responses included; 0
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
	if err := o.checkAllowAddr(); err != nil {
		return o, err
	}
	if err := o.checkProxyProtocol(); err != nil {
		return o, err
	}
	if err := o.checkShares(); err != nil {
		return o, err
	}
	for _, status := range o.FailStatuses {
		if status < 200 || status > 999 {
			return o, fmt.Errorf("FailStatuses: %d is not from 200 to 999", status)
		}
	}
	for _, kind := range o.FailKinds {
		known := kind >= 0 && kind < culvert.Internal && kind != culvert.NoTarget && kind != culvert.Busy
		if !known || !(&culvert.Error{Kind: kind}).TargetSide() {
			return o, fmt.Errorf("FailKinds: %q is never a target's failure", kind)
		}
	}
	if o.Dialer != nil && o.DialContext != nil {
		return o, errors.New("both Dialer and DialContext are set")
	}
	set(&o.Scheme, "http")
	set(&o.Balance, RoundRobin())
	o.QueueTimeout = bound.OrDefault(o.QueueTimeout, 10*time.Second)
	o.DialTimeout = bound.OrDefault(o.DialTimeout, 10*time.Second)
	o.IdleTimeout = bound.OrDefault(o.IdleTimeout, time.Minute)
	set(&o.FailWindow, 10*time.Second)
	set(&o.FailMinRequests, 10)
	set(&o.RetryAfter, time.Second)
	set(&o.WriteTimeout, time.Minute)
	set(&o.HeaderTimeout, time.Minute)
	set(&o.PingInterval, 15*time.Second)
	set(&o.MaxIdleConns, 128)
	set(&o.MaxHeaderBytes, 64<<10)
	if o.Check != nil {
		check, err := o.Check.withDefaults(o.Scheme)
		if err != nil {
			return o, err
		}
		o.Check = &check
	}
	return o, nil
}

// set sets *v to its default if it is zero.
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
		{"FailWindow", int64(o.FailWindow)},
		{"FailMinRequests", int64(o.FailMinRequests)},
		{"MaxFailTimeout", int64(o.MaxFailTimeout)},
		{"SlowStart", int64(o.SlowStart)},
		{"MaxInFlight", int64(o.MaxInFlight)},
		{"Queue", int64(o.Queue)},
		{"RetryAfter", int64(o.RetryAfter)},
		{"MaxIdleConns", int64(o.MaxIdleConns)},
		{"MaxConnRequests", int64(o.MaxConnRequests)},
		{"MaxHeaderBytes", o.MaxHeaderBytes},
	} {
		if n.value < 0 {
			return fmt.Errorf("%s is negative", n.name)
		}
	}
	if o.FailRate == 0 && (o.FailWindow != 0 || o.FailMinRequests != 0) {
		return errors.New("FailWindow or FailMinRequests without FailRate")
	}
	return nil
}

func (o Options) checkShares() error {
	for _, share := range []struct {
		name  string
		value float64
	}{
		{"FailRate", o.FailRate},
		{"MaxEjected", o.MaxEjected},
		{"PanicThreshold", o.PanicThreshold},
	} {
		if !(share.value >= 0 && share.value <= 1) { // not a number either
			return fmt.Errorf("%s %v is not from 0 to 1", share.name, share.value)
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
