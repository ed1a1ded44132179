package simulate

import (
	"fmt"
	"time"
)

// Plan describes a whole history.
type Plan struct {
	Gateway  GatewayPlan
	Targets  []TargetPlan
	Clients  []ClientPlan
	Changes  []ChangePlan
	Upstream UpstreamPlan
	// Pace is the divisor of all durations, including those of the gateway that are not in
	// the plan; 0 means 1.
	Pace int
}

// TargetPlan describes a server behind the gateway.
type TargetPlan struct {
	Addr  string
	Links LinksPlan
	// Refuse holds the outcome of the first dials: refused, or hanging.
	Dials []Dialling
	// IdleClose is how long the target keeps an idle connection; 0: until the end.
	IdleClose time.Duration
	ByFrames  bool // over HTTP/2, by Frames
	Frames    FramesPlan
	Base      string // the path of its URL; "": none
}

// LinksPlan describes the links of connections: all have the same manners, and the first few
// have faults.
type LinksPlan struct {
	Manners Link
	There   []Fault // of the nth connection
	Back    []Fault
	Seed    uint64
}

// cutConns is how many connections of a party are cut into small segments: a target may be checked over hundreds.
const cutConns = 8

// link returns the links of the nth connection.
func (p *LinksPlan) link(n int) (there, back Link) {
	there, back = p.Manners, p.Manners
	if n >= cutConns && there.Segment > 0 {
		there.Segment, back.Segment = 1460, 1460
	}
	there.Seed, back.Seed = p.Seed+uint64(n)*2, p.Seed+uint64(n)*2+1
	if n < len(p.There) {
		there.Fault = p.There[n]
	}
	if n < len(p.Back) {
		back.Fault = p.Back[n]
	}
	return there, back
}

// ClientKind is the protocol of a client.
type ClientKind int

const (
	// HTTP1 keeps its connection and may pipeline.
	HTTP1 ClientKind = iota
	// HTTP10 has a connection for each request.
	HTTP10
	// HTTP2 sends its requests over one connection.
	HTTP2
	// WebSocket opens a tunnel with each request.
	WebSocket
	// Malformed sends malformed requests over HTTP/1.1, each on a connection of its own.
	Malformed
	// Frames speaks HTTP/2 by frames: with closed windows, padding, resets, settings in between.
	Frames
	// WebSocket2 opens its tunnels on the streams of one HTTP/2 connection (RFC 8441).
	WebSocket2
	kinds // how many there are
)

// String returns the protocol.
func (k ClientKind) String() string {
	return [...]string{"HTTP/1.1", "HTTP/1.0", "HTTP/2", "WebSocket", "malformed", "HTTP/2 frames", "WebSocket over HTTP/2"}[k]
}

// overHTTP2 reports whether the kind speaks HTTP/2.
func (k ClientKind) overHTTP2() bool { return k == HTTP2 || k == Frames || k == WebSocket2 }

// upgrades reports whether it opens tunnels.
func (k ClientKind) upgrades() bool { return k == WebSocket || k == WebSocket2 }

// ClientPlan describes a client.
type ClientPlan struct {
	Kind      ClientKind
	Start     time.Duration
	Links     LinksPlan
	Pipelined bool
	LateByte  time.Duration // how long the last bytes of pipelined requests follow behind the others, 0 for not at all
	TLS       bool
	Frames    FramesPlan
	Stays     StayKind // what becomes of a connection that is kept behind the last response
	Requests  []ExchangePlan
}

// ExchangePlan describes a request and the responses of targets to it.
type ExchangePlan struct {
	Token     uint32
	Wait      time.Duration // before it is sent
	Method    string
	Path      string
	Query     string
	Header    [][2]string
	Body      BodyPlan
	Expect    bool // 100-continue
	Key       bool // Idempotency-Key
	Spelt     bool // the names of Header, and those of the responses' fields, are not canonical
	Trailer   [][2]string
	Accept    string // Accept-Encoding, "" for none
	Coding    string // Content-Encoding of the body
	Forwarded bool   // X-Forwarded-For is there
	Under     bool   // a field has an underscore in its name
	Kube      KubeVerb
	Resumed   bool   // a watch that continues from resumedVersion
	Wants     string // Accept, "" for none
	// GiveUp is how long the client waits for the end; 0: for ever (an hour).
	GiveUp time.Duration
	// ReadPause is how long the client waits before each read of the response's body
	// beyond the first 4 KiB.
	ReadPause time.Duration
	Forbidden string         // a field that is sent as a trailer and must not be; "": none
	Responses []ResponsePlan // for each attempt; the last one is also for further attempts
	Tunnel    TunnelPlan
	Malformed int // which of the malformations
	Manner    ExpectManner
	HalfClose bool // a FIN follows the request, and the response is still read
	After     bool // a malformed request follows a good one
	Slashes   bool // the path begins with two slashes
	Broken    bool // the gateway's Rewrite makes it a request that can't be written
	// ReadAfter is how long the client accepts nothing after it has sent its header; 0: it reads at once.
	ReadAfter time.Duration
	Large     int  // the length of a header field, 0: there is none
	Panics    bool // the gateway's Rewrite panics
	// DialPanics is the number of the dial for the request at which the gateway's DialContext panics; 0: none.
	DialPanics int
	// TracePause is how long the program's trace takes when net/http's transport has a connection for the request.
	TracePause time.Duration
	Raises     Raise
	Guarded    string // the host of an address that the request names as its target, and that is refused; "": none
	Page       Page   // the program's own handler responds
}

// BodyPlan describes a body and how it is sent.
type BodyPlan struct {
	Length  int64
	Chunked bool
	Piece   int // the bytes of a write; 0: all
	Pause   time.Duration
	// CutAt ends the body early, if it is below Length: by a reset, a FIN or silence.
	Cut   bool
	CutAt int64
	How   FaultKind
}

// ResponseFraming says how a response's body ends.
type ResponseFraming int

const (
	// ByLength is a Content-Length.
	ByLength ResponseFraming = iota
	// Chunked is Transfer-Encoding: chunked.
	Chunked
	// ByClose is the end of the connection.
	ByClose
)

// ResponsePlan describes what a target does with a request.
type ResponsePlan struct {
	Status  int
	Interim int // how many interim responses precede it
	Delay   time.Duration
	Framing ResponseFraming
	Body    BodyPlan
	Trailer [][2]string
	Forget  bool        // the announced trailers are not sent
	Early   bool        // the response does not wait for the request's body
	Wants   BodyRequest // if the request has Expect
	Close   bool        // Connection: close
	Behind  int         // how many bytes follow the response that belong to none
	Garbage bool        // the bytes sent are no response
	Never   bool        // nothing is sent
	Media   int
	Coding  string // Content-Encoding
	Half    bool   // the encoded content ends early, in a body that is whole
	Cache   string // Cache-Control
	Odd     int    // which of the oddities, from 1; 0: none
	// OddFrames is which of the frameOddities, where the target speaks by frames; 0: none.
	OddFrames int

	Padding     int           // bytes in each interim response
	HeaderPause time.Duration // between the header and the body
	Drip        time.Duration // between pieces of the header section
	Linger      time.Duration // how long the connection is kept open after "Connection: close"
	Kube        *KubeContent  // nil: none
	Forbidden   string        // a field that is sent as a trailer and must not be; "": none
	Stale       StaleKind     // what the target does if the request comes over a kept connection
	// Unasked is how long after the response a 408 is sent without a request, if the connection is idle; 0: none.
	Unasked  time.Duration
	Apart    bool          // over frames, the end of a response without a body is a frame of its own
	EndPause time.Duration // before that frame
}

// response returns the plan of the nth attempt.
func (e *ExchangePlan) response(n int) *ResponsePlan {
	return &e.Responses[min(n, len(e.Responses)-1)]
}

// target is the request target: path and query.
func (e *ExchangePlan) target() string {
	if e.Kube != KubeNothing {
		return e.kubeTarget()
	}
	t := fmt.Sprintf("/%d%s", e.Token, e.Path)
	if e.Slashes {
		t = "/" + t
	}
	if e.Query != "" {
		t += "?" + e.Query
	}
	return t
}

// TunnelPlan describes the traffic of a tunnel.
type TunnelPlan struct {
	Up, Down     BodyPlan
	Early        bool // the client sends before the 101
	TargetRefuse int  // a status in place of the 101
	BadAccept    bool
	BadSwitch    int           // which of the badSwitches, from 1; 0: none
	ClientFirst  bool          // the client ends first
	Joined       bool          // the target's first frames come with its 101
	Posted       int           // the length of the body of an upgrade to another protocol than websocket; 0: the upgrade is to websocket
	Mute         bool          // the end that would close first sends no Close frame
	Nap          time.Duration // before the other end reads
}

// ChangePlan is a change of the gateway at a moment.
type ChangePlan struct {
	At   time.Duration
	Kind ChangeKind
	Arg  int
	// Places are those that a target gets.
	Places int
}

// ChangeKind is a kind of change.
type ChangeKind int

const (
	// SetTargets replaces the group's targets by all except one.
	SetTargets ChangeKind = iota
	// SetAll replaces them by all.
	SetAll
	// DrainGroup drains the group.
	DrainGroup
	// CloseTunnels closes all tunnels there are.
	CloseTunnels
	// SetPlaces replaces the targets by all, of which one has other places.
	SetPlaces
	// DrainTarget drains a target of the group.
	DrainTarget
	// UndrainTarget has a target that DrainTarget drained used again.
	UndrainTarget
)

// streams of contents that belong to an exchange.
func (e *ExchangePlan) requestBody() Content { return Content{e.Token << 4, e.Body.Length} }
func (e *ExchangePlan) responseBody(attempt int) Content {
	return Content{e.stream(attempt), e.response(attempt).Body.Length}
}
func (e *ExchangePlan) stream(attempt int) uint32 { return e.Token<<4 + 1 + uint32(min(attempt, 5)) }
func (e *ExchangePlan) up() Content               { return Content{e.Token<<4 + 8, e.Tunnel.Up.Length} }
func (e *ExchangePlan) down() Content             { return Content{e.Token<<4 + 9, e.Tunnel.Down.Length} }
