package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/upstream"
	"github.com/culvert-go/culvert/wsupgrade"
)

// Options configures a Proxy. Only Upstream is needed. Times are as package culvert says: 0 is the
// default, which for Timeout and BodyTimeout is no bound, and a negative value is no bound.
type Options struct {
	// Upstream picks the target of each attempt: an *upstream.Group, an *upstream.Dynamic, whose targets the requests name, or
	// a Picker of the program's own. Required.
	//
	// If it is not a *Group, exchanges run by the group of each Lease. Outbound.Out.URL.Scheme is "" then in Rewrite, Upgrades,
	// if it has a Dial, needs upstream.Dial as its Dial and its DialTLS, and an attempt for which Pick returns a target that it was given among
	// tried does not take place, as if there were none.
	Upstream upstream.Picker
	// Transport runs the exchanges that are not upgrades. nil means the own transport of the group. If it is an
	// *upstream.Transport for HTTP/1.1, the proxy uses its connections and calls no RoundTrip, at less than half the cost.
	// Upgrades are always dialled by Upgrades.
	//
	// If Upstream has an AllowAddr, Transport must have one, too: it is an *upstream.Transport that was made with one, or has a
	// method AllowAddr() func(netip.Addr) bool that does not return nil. A transport of the program's own has such a method if
	// all its connections are made by one that it wraps.
	//
	// Any other transport has the bounds that it was made with, and an http.Transport{} has no timeouts: DialTimeout,
	// WriteTimeout, HeaderTimeout and MaxHeaderBytes of the upstream do not apply (see Group.HeaderBounds). So it is with a
	// transport that wraps an *upstream.Transport, for tracing or logging for instance: exchanges run at the cost of
	// net/http's. Use OnAttempt to observe attempts or to add header fields: with it the proxy keeps its own way to the
	// targets, on which hooks of net/http/httptrace are not called.
	//
	// An error of a transport counts as the target's failure (502), and a part of the request may have been sent. After a dial
	// error the request is retried on another target only if the error is a *net.OpError or an *upstream.DialError. A transport
	// that fails by itself, before it sends anything to the target, returns a *culvert.Error, or an error that wraps one: its
	// Kind, BytesSent and RetryAfter are used. With Kind Internal (500) there is no retry, and no target is to blame. The same
	// applies if a transport returns neither a response nor an error.
	//
	// A response whose Content-Length is not a number, or differs from another Content-Length or from
	// http.Response.ContentLength, is the target's failure (502; RFC 9110 section 8.6), and so is a body of another length
	// (BodyBroken). A ContentLength of 0 with a Body counts as unknown. The last bytes of a body of known length are relayed
	// when the body has ended.
	//
	// The proxy learns about an attempt's connection by the net/http/httptrace of the request's context. If one RoundTrip of a
	// request without a body gets a second connection before the first has responded, that is taken for net/http's endless
	// retries of a request that a target of HTTP/2 refuses, and the attempt ends. A transport that sends a request twice at the
	// same time (hedging) must pass the trace to one of them only: the other's context must not return its values.
	//
	// The context of a request with the client's body ends if the response is closed before the body's end. It also ends if the
	// transport has closed the body that it reads and has returned no response one second later, or 50 milliseconds later if the
	// trace has reported a connection and no byte of a response. An *http.Transport for HTTP/1.1 notices a target that breaks
	// off meanwhile only when the client's next bytes are received, or ReadTimeout has passed.
	//
	// The body of a response whose ProtoMajor is 2 or more is closed when the time of the exchange has ended or its client has
	// disconnected, also during a Read: its Close must allow that, as net/http's does. Set DisableCompression of an
	// http.Transport: a body that it decompresses can't be closed before the header of the gzip stream was received, so that a
	// response over HTTP/2 that comes to a halt there, beside an upload, is bounded only by the client.
	Transport http.RoundTripper
	// Rewrite changes the outbound request. It is called once for each request, before a
	// target is picked. nil means only Outbound.SetXForwarded. It is called after the client's
	// hop-by-hop fields were removed, so that a client can't remove what it adds by naming it
	// in Connection. Outbound.Fail ends the exchange.
	Rewrite func(*Outbound)
	// KeepFieldNames sends the header fields of requests and of final responses over HTTP/1.1 with the names as the peer has spelt them, and
	// in its order: a field that was added follows. Names of a target that speaks HTTP/2 are in lower case, as that has them; their order is
	// that of the alphabet. The server must be a server.Server, for requests one with KeepFieldNames.
	// Otherwise names are canonical ("X-Ip" for "X-IP"), as those of an http.Header are, and have no order.
	// Trailers that HTTP/1.1 has announced are sent as Trailer spells and orders them. Interim responses and other trailers have canonical
	// names in any case.
	KeepFieldNames bool
	// OnAttempt, if not nil, is called before each attempt, with the request that will be sent, whose URL is that of the attempt at
	// the target, and the address of the target. The header fields that it sets in out.Header are sent only in this attempt: a traceparent
	// for instance. Other changes of out have no effect, and its Body is nil. The function that it returns, if not nil, is
	// called with the record of the attempt when the attempt has ended, also by a panic of a hook. Upgrades are attempts, too:
	// with DetachTunnels one ends with its 101. Both functions are called on the handler's goroutine, and must not use out
	// after the handler has returned. A panic of OnAttempt is passed on. filters.Observe reports an exchange with all its
	// attempts.
	OnAttempt func(out *http.Request, target string) (ended func(culvert.Attempt))
	// ModifyResponse, if not nil, changes the header of a target's final response, or of its 101,
	// before it is sent to the client, after its hop-by-hop fields were removed and before the
	// filters see it. It is not called for other interim responses, nor for a response that is
	// retried. Response.Fail and Response.ServeInstead drop the response.
	ModifyResponse func(*Response)
	// Upgrades forwards upgrades; nil means WebSocket with wsupgrade's defaults,
	// its same-origin check included, dialled as the group of the target dials. So is the target of a Forwarder without a Dial;
	// a Dial of the program's own must itself do what AllowAddr, DialContext and ProxyProtocol of the group are for.
	Upgrades *wsupgrade.Forwarder
	// DetachTunnels makes the handler return when a tunnel is open (wsupgrade.Forwarder.Start).
	// An idle tunnel over plain sockets on Linux then holds some 2 KiB instead of 28. It still
	// counts as a request of its target, and for Drain, until it has ended. But for the filters
	// the request ends with its 101: logs have neither its bytes nor its duration, limits of
	// concurrent requests do not count it, and the end of the request's context does not end it.
	// So it is not the default.
	DetachTunnels bool
	// Retry configures when a request is retried on another target.
	Retry Retry

	// Timeout is the maximum time of a whole exchange that is not an upgrade, including all
	// attempts; 0 means no bound. If it ends while the exchange waits for the client, to send its
	// body or to accept the response, that is the client's failure (BodyTooSlow, 408; ClientGone)
	// and does not count against the target. Nor does it if the target had less than half of the
	// time, because the client, a queue or another target used the rest. Each write of an outer
	// filter or the server after the Proxy has returned has the time of WriteTimeout. The times to
	// dial a target, to send the request and to the response's header are bounded by the
	// transport: for a group's own by upstream.Options, HeaderTimeout for instance.
	Timeout time.Duration
	// BodyTimeout is the maximum time that the target may take for the next bytes of its
	// response's body; it may be exceeded by a quarter. 0 means no bound: a watch may be silent for
	// hours. A client that disconnects meanwhile ends the exchange. An exception is a client of
	// HTTP/1.1 that has pipelined another request: net/http then stops reading its connection, and
	// notices the disconnect only at the next write. Without a bound here and in Timeout, its
	// request, and upstream.Group.Drain, may wait for a silent target for ever.
	//
	// A response over HTTP/2 of more than 4 KiB may exceed this bound, and Timeout, by the
	// WriteTimeout of the upstream at most, while its target reads nothing of the connection:
	// net/http's transport updates the target's window before a read returns.
	BodyTimeout time.Duration
	// ReadTimeout bounds the time that the client may take for the next bytes of
	// its request's body (408), to a quarter. 0 means 60 seconds. It also holds while a response is relayed, which is
	// aborted then: a negative value lets the client of a stream in both directions, of gRPC for instance, be silent.
	ReadTimeout time.Duration
	// WriteTimeout bounds the time that the client may take to accept a piece of
	// the response, up to 128 KiB, to a quarter, or an interim response. 0 means 60
	// seconds. A client that reads nothing at all from an
	// HTTP/2 connection holds its exchanges all the same, unless the server's
	// http.HTTP2Config has a WriteByteTimeout: net/http ends a stream behind the
	// write that is under way. Where filters around change the content it is what the outermost of them writes that has this time:
	// what they do between, and what they wait for, does not count. Over HTTP/1.1 with TLS net/http's server holds the exchange
	// for up to 5 seconds more, which crypto/tls gives the alert that closes the connection.
	//
	// No handler is called for a malformed request over HTTP/2: net/http's server responds with a page of its own (400, or 431),
	// which a client that opens no window for it holds until its connection ends. Of the server's timeouts only
	// http.Server.WriteTimeout bounds that, which ends every longer response as well.
	WriteTimeout time.Duration

	// RequestBuffer holds a request's body until all of it was received, before a target is
	// picked: a slow client then holds no target, and every body can be sent again. A body that
	// does not fit is refused with 413. If RequestBuffer is nil, bodies are streamed.
	RequestBuffer *Buffer
	// StreamRequest has the header of each request sent before its body was received, over HTTP/1.1: a target sees the
	// beginning of a slow upload, and what the client has sent by then. Otherwise a body of known length that is short,
	// up to some 30 KiB with the header, is received before, and costs one write; and over HTTP/2 the end of a body that was
	// declared to be empty is awaited, which then has no trailers. It has no effect on what RequestBuffer holds.
	StreamRequest bool
	// ResponseBuffer reads a response's body ahead of a slow client, so that the target is free
	// sooner. The part that does not fit is read at the client's pace. A response with
	// "X-Accel-Buffering: no" is streamed. If ResponseBuffer is nil, all are.
	ResponseBuffer *Buffer
	// FlushInterval is the maximum time between a write of content and its flush. 0 flushes
	// whenever the target pauses, which suits streams and downloads; a negative value flushes
	// after each read.
	FlushInterval time.Duration
	// RequestTrailer and ResponseTrailer report whether a trailer field is forwarded; nil means
	// that all are. See OnlyTrailers.
	RequestTrailer, ResponseTrailer func(name string) bool

	// ErrorHandler responds to a request that failed before a header was sent. It or an outer
	// handler must write a response; Error.Status is the status to use. Each write has the time of
	// WriteTimeout, unless ErrorHandler sets a write deadline itself (http.ResponseController).
	// nil writes the status and its text, or to a gRPC call, which has the Content-Type application/grpc, the grpc-status
	// that stands for it: 4 for 504, 14 for 502 and 503, 13 for 500, 8 for 413, with the status 200. It is not called if the client has disconnected.
	//
	// An ErrorHandler may forward the request to another group. If RequestBuffer is set and holds the whole body, it can
	// be read once more, until ErrorHandler returns. Otherwise each read of it fails if it was to be sent: the
	// body was the target's.
	ErrorHandler func(http.ResponseWriter, *http.Request, *culvert.Error)
	// OnError, if not nil, is called with each failure, before ErrorHandler is called or the
	// response is aborted.
	// It is not called for a transform of a filter's that fails at its end (filters.ResponseHooks.Body), since the Proxy has returned
	// by then: Result.Err has that failure, which filters.AccessLog writes.
	OnError func(*http.Request, *culvert.Error)
}

// Buffer bounds what is held of a body.
type Buffer struct {
	// Memory is how many bytes are held in memory; 0 means 64 KiB.
	Memory int64
	// Disk is how many more bytes are held in a temporary file; 0 means none.
	Disk int64
	// Dir is where the file is made, a directory that exists when New is called; ""
	// means os.TempDir. It is an error without Disk. The file has no name
	// while it is in use, where the system allows that.
	Dir string
}

const (
	standardTimeout = 60 * time.Second
	standardBuffer  = 64 << 10
)

// withDefaults checks o and fills its defaults in. A time of no bound is 0 after
// it.
func (o Options) withDefaults() (Options, error) {
	group, isGroup := o.Upstream.(*upstream.Group)
	dynamic, isDynamic := o.Upstream.(*upstream.Dynamic)
	if o.Upstream == nil || isGroup && group == nil || isDynamic && dynamic == nil {
		return o, errors.New("proxy: Options.Upstream is nil")
	}
	err := o.checkGuard(o.Upstream)
	if err != nil {
		return o, err
	}
	if o.Retry, err = o.Retry.withDefaults(); err != nil {
		return o, err
	}
	o.ReadTimeout = cmp.Or(o.ReadTimeout, standardTimeout)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, standardTimeout)
	for _, d := range []*time.Duration{&o.Timeout, &o.BodyTimeout, &o.ReadTimeout, &o.WriteTimeout} {
		*d = max(0, *d)
	}
	for name, b := range map[string]**Buffer{"RequestBuffer": &o.RequestBuffer, "ResponseBuffer": &o.ResponseBuffer} {
		if *b, err = (*b).withDefaults(); err != nil {
			return o, fmt.Errorf("proxy: Options.%s: %w", name, err)
		}
	}
	if o.Transport == nil && isGroup {
		o.Transport = group.Transport()
	}
	if o.Rewrite == nil {
		o.Rewrite = (*Outbound).SetXForwarded
	}
	if o.ErrorHandler == nil {
		o.ErrorHandler = writeError
	}
	return o, nil
}

func (b *Buffer) withDefaults() (*Buffer, error) {
	if b == nil {
		return nil, nil
	}
	if b.Memory < 0 || b.Disk < 0 {
		return nil, errors.New("negative size")
	}
	if err := b.checkDir(); err != nil {
		return nil, err
	}
	full := *b
	if full.Memory == 0 {
		full.Memory = standardBuffer
	}
	return &full, nil
}

// checkDir returns why no file can be made in Dir: each request would fail by it.
func (b *Buffer) checkDir() error {
	if b.Dir == "" {
		return nil
	}
	if b.Disk == 0 {
		return fmt.Errorf("directory %q without Disk", b.Dir)
	}
	info, err := os.Stat(b.Dir)
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("directory: %q is no directory", b.Dir)
	}
	return nil
}
