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
	// Upstream is the group of targets that requests go to. Required.
	Upstream *upstream.Group
	// Transport runs the plain exchanges; nil means the upstream's. Of an
	// *upstream.Transport for HTTP/1.1 the proxy uses the connections: it writes
	// and reads them itself, at less than half the cost. Upgrades are
	// always dialled by Upgrades. Any other transport has the bounds that it was made with, and no timeouts in
	// an http.Transport{}: DialTimeout, WriteTimeout, HeaderTimeout and MaxHeaderBytes of the upstream are not its own (see
	// Group.HeaderBounds). After a dial error of another transport than a group's a second target is asked only if it is a *net.OpError or an
	// *upstream.DialError.
	//
	// An error of a transport is the target's failure (502) and may have come after a part
	// of the request was sent: nothing tells what a transport of your own has done. One that
	// fails by itself, before it asks the target, returns an *culvert.Error, or one that wraps it:
	// its Kind, Wrote and RetryAfter are used. With Kind Internal (500) no other target is
	// asked, and none is blamed. So it is where a transport returns neither a response nor an error. A response whose
	// Content-Length is no number, or differs from another one or from http.Response.ContentLength, is the target's failure
	// (502; RFC 9110 section 8.6), and so is a body of another length (BodyBroken). A ContentLength of 0 beside a Body is
	// taken for one that was left out. The last bytes of a body of known length are relayed when it has ended.
	//
	// What is known of an attempt's connection comes from the net/http/httptrace of the request's context. In one RoundTrip
	// of a request without a body, a second connection before the first has responded is taken for net/http's endless
	// retries of a request that a target of HTTP/2 refuses, and ends the attempt. A transport that sends a request
	// twice at once (hedging) lets one of them alone have the trace: the other's context must not give out its values.
	//
	// The context of a request whose body comes from the client ends where its response is closed before that body's end, and
	// where the transport closes the body that it reads and has, one second later, returned no response: 50 milliseconds later where
	// the trace tells of a connection, and of no byte of a response over it. An *http.Transport for HTTP/1.1 notices a
	// target that breaks off meanwhile no sooner than the client's next bytes come, or ReadTimeout is over.
	//
	// The body of a response whose ProtoMajor is 2 or more is closed when the time of the exchange is over, or its client has left, also
	// while it is read: its Close must allow that, as net/http's do. Set DisableCompression of an http.Transport: the body of one that
	// decompresses by itself can't be closed before it has the header of the gzip stream, so that a response over HTTP/2 which
	// comes to a halt there, beside an upload, has no bound but the client's.
	//
	// A transport that wraps an *upstream.Transport, as those for tracing and logging do, is another one: the proxy calls its RoundTrip,
	// so that exchanges run at the cost of net/http's, over connections of their own. Use OnAttempt to observe attempts or to add
	// header fields to them: it leaves the proxy its own way to the targets, on which hooks of net/http/httptrace are not called.
	Transport http.RoundTripper
	// Rewrite changes the outbound request before it is sent, once for each
	// request, before a target is picked. nil means Outbound.SetXForwarded and
	// nothing else. It runs after the client's hop-by-hop fields were removed,
	// so that a client can't name away what it adds.
	Rewrite func(*Outbound)
	// OnAttempt, if not nil, is called before each attempt, with the request as it will be sent, whose URL.Host is the target's, and the
	// address of the target. The header fields that it sets in out.Header are sent in this attempt alone: a traceparent for
	// instance. Other changes of out have no effect, and its Body is nil. The function that it returns, if not nil, is
	// called with the record of the attempt when that has ended, also by a panic of a hook. Upgrades are attempts, too: with
	// DetachTunnels one has ended with its 101. Both functions run on the handler's goroutine, and must not use out when the
	// handler has returned. A panic of OnAttempt is passed on. filters.Observe sees an exchange with all its attempts.
	OnAttempt func(out *http.Request, target string) (ended func(culvert.Attempt))
	// ModifyResponse, if not nil, changes the header of a target's final response, or of its 101,
	// before it is sent to the client, after its hop-by-hop fields were removed and before the
	// filters see it. It is not called for other interim responses, nor for a response that is
	// retried.
	ModifyResponse func(*Response)
	// Upgrades forwards upgrades; nil means WebSocket with wsupgrade's defaults,
	// its same-origin check included, dialled as the upstream dials.
	Upgrades *wsupgrade.Forwarder
	// DetachTunnels lets the handler return when a tunnel is open
	// (wsupgrade.Forwarder.Start). An idle tunnel over plain sockets on Linux then holds
	// some 2 KiB instead of 28. The target keeps it among its requests until it has ended,
	// and so does Drain. The filters see the request end with its 101: logs tell neither
	// its bytes nor its duration, limits of concurrent requests do not count it, and no
	// context around the handler ends it. That is why it is not the default.
	DetachTunnels bool
	// Retry says when another target is asked.
	Retry Retry

	// Timeout bounds a whole exchange that is no upgrade, all tries included; 0
	// means no bound. A time that runs out while the client is waited for, to send
	// its body or to accept the response, is the client's failure (BodyTooSlow, 408;
	// ClientGone) and says nothing about the target. Nor does one of which the target
	// had less than half, since the client was slow before, or a queue or another target. What a filter around the Proxy, or
	// the server, still holds of the response when the Proxy returns has WriteTimeout for each write. How long a target may take to be
	// dialled, to accept the request and to begin its response is the transport's matter: options of
	// the upstream say it to a group's own, HeaderTimeout for instance.
	Timeout time.Duration
	// BodyTimeout bounds the time that the target may take for the next bytes of
	// its response's body, to a quarter. 0 means no bound: a watch may be silent for hours. A client that leaves
	// meanwhile ends the exchange, but for one of HTTP/1.1 that has sent a further request behind this one: net/http reads
	// no more of its connection then, and such a client is not noticed to have gone before something is written to it. With
	// no bound here and none in Timeout its request, and upstream.Group.Drain, may wait for a silent target for ever.
	//
	// A response over HTTP/2 of more than 4 KiB may outlive this bound, and Timeout, while its target reads nothing of the connection:
	// net/http's transport tells the target of what was read before a read returns. That takes the WriteTimeout of the upstream at most.
	BodyTimeout time.Duration
	// ReadTimeout bounds the time that the client may take for the next bytes of
	// its request's body (408), to a quarter. 0 means 60 seconds.
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

	// RequestBuffer holds a request's body until it has come as a whole, before a
	// target is asked: a slow client then holds no target, and every body can be
	// sent again. A body that does not fit is answered with 413. nil streams.
	RequestBuffer *Buffer
	// ResponseBuffer reads an answer's body ahead of a slow client, so that the
	// target is done sooner. What does not fit is read at the client's pace.
	// An answer with "X-Accel-Buffering: no" is streamed. nil streams all.
	ResponseBuffer *Buffer
	// FlushInterval is the longest time that content may wait for more before it
	// is sent. 0 sends whenever the target pauses, which suits streams and
	// downloads alike; a negative value sends after each read.
	FlushInterval time.Duration
	// RequestTrailer and ResponseTrailer say which trailers are forwarded; nil
	// means all. See OnlyTrailers.
	RequestTrailer, ResponseTrailer func(name string) bool

	// ErrorHandler responds to a request that failed before a header was sent. It
	// must write a response, or a handler around the Proxy must; Error.Status is the status to use. Each
	// write has the time of WriteTimeout, unless ErrorHandler sets a write deadline itself
	// (http.ResponseController). nil writes the
	// status and its text. It is not called where the client has gone.
	ErrorHandler func(http.ResponseWriter, *http.Request, *culvert.Error)
	// OnError is told every failure first, before ErrorHandler or the abort of an
	// answer of which the head is out. nil means nothing is told.
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
	if o.Upstream == nil {
		return o, errors.New("proxy: Options.Upstream is nil")
	}
	var err error
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
	if o.Transport == nil {
		o.Transport = o.Upstream.Transport()
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
