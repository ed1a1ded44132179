package simulate

import (
	"fmt"
	"time"
)

// Plan is a whole history before it runs.
type Plan struct {
	Gateway  GatewayPlan
	Targets  []TargetPlan
	Clients  []ClientPlan
	Changes  []ChangePlan
	Upstream UpstreamPlan
	// Pace is by how much the durations are divided, of those that the gateway has besides
	// its plan, too; 0 is 1.
	Pace int
}

// TargetPlan is a server behind the gateway.
type TargetPlan struct {
	Addr  string
	Links LinksPlan
	// Refuse says of the first dials whether they are refused, or hang.
	Dials []Dialling
	// IdleClose is how long the target keeps an idle connection; 0: until the end.
	IdleClose time.Duration
	ByFrames  bool // over HTTP/2, by Frames
	Frames    FramesPlan
}

// LinksPlan makes the links of connections: each has the same manners, and the first few
// their faults.
type LinksPlan struct {
	Manners Link
	There   []Fault // of the nth connection
	Back    []Fault
	Seed    uint64
}

// cutConns is how many connections of a party are cut small: a target may be checked over hundreds.
const cutConns = 8

// link returns those of the nth connection.
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

// ClientKind is what a client speaks.
type ClientKind int

const (
	// HTTP1 keeps its connection and may pipeline.
	HTTP1 ClientKind = iota
	// HTTP10 has a connection for each request.
	HTTP10
	// HTTP2 sends its requests over one connection.
	HTTP2
	// WebSocket opens a tunnel for each of its requests.
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

// ClientPlan is one client.
type ClientPlan struct {
	Kind      ClientKind
	Start     time.Duration
	Links     LinksPlan
	Pipelined bool
	TLS       bool
	Frames    FramesPlan
	Requests  []ExchangePlan
}

// ExchangePlan is a request and how targets respond to it.
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
	Responses []ResponsePlan // of the nth attempt; the last one's holds for further ones
	Tunnel    TunnelPlan
	Malformed int // which of the malformations
	Manner    ExpectManner
	HalfClose bool // a FIN behind the request, and the response is still read
	After     bool // a malformed request stands behind a good one
	Slashes   bool // the path begins with two
	Broken    bool // the gateway's Rewrite makes a request of it that can't be written
	// ReadAfter is how long the client accepts nothing behind its header; 0: it reads at once.
	ReadAfter time.Duration
	Large     int  // the length of a header field, 0: there is none
	Panics    bool // the gateway's Rewrite panics
	// DialPanics is which dial for the request is one that the gateway's DialContext panics for; 0: none.
	DialPanics int
	// TracePause is what the program's trace takes when net/http's transport has a connection for the request.
	TracePause time.Duration
	Raises     Raise
}

// BodyPlan is a body and how it is sent.
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
	// ByClose is the connection's end.
	ByClose
)

// ResponsePlan is what a target does with a request.
type ResponsePlan struct {
	Status  int
	Interim int // how many interim responses come before it
	Delay   time.Duration
	Framing ResponseFraming
	Body    BodyPlan
	Trailer [][2]string
	Forget  bool // the announced trailers do not come
	Early   bool // the response does not wait for the request's body
	Close   bool // Connection: close
	Behind  int  // bytes behind the response that belong to none
	Garbage bool // what comes is no response
	Never   bool // nothing comes
	Media   int
	Coding  string // Content-Encoding
	Half    bool   // what is encoded ends early, in a body that is whole
	Cache   string // Cache-Control
	Odd     int    // which of the oddities, from 1; 0: none
	// OddFrames is which of the frameOddities, where the target speaks by frames; 0: none.
	OddFrames int

	Padding     int           // bytes in each interim response
	HeaderPause time.Duration // between the header and the body
	Drip        time.Duration // between pieces of the header section
	Linger      time.Duration // of a connection that the response says is closed
	Kube        *KubeContent  // nil: none
	Forbidden   string        // a field that is sent as a trailer and must not be; "": none
	Stale       StaleKind     // what becomes of the request where it comes over a kept connection
	// Unasked is how long behind the response a 408 comes that no request has led to, if the connection is idle; 0: none.
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

// TunnelPlan is what goes through a tunnel.
type TunnelPlan struct {
	Up, Down     BodyPlan
	Early        bool // the client sends before the 101
	TargetRefuse int  // a status in place of the 101
	BadAccept    bool
	BadSwitch    int           // which of the badSwitches, from 1; 0: none
	ClientFirst  bool          // the client ends first
	Joined       bool          // the target's first frames come with its 101
	Posted       int           // the length of the body of an upgrade to another protocol than websocket, 0: it is one to that
	Mute         bool          // the end that would close first sends no Close frame
	Nap          time.Duration // before the other end reads
}

// ChangePlan is something that happens to the gateway at a moment.
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
	// SetTargets replaces the group's targets by all of them but one.
	SetTargets ChangeKind = iota
	// SetAll replaces them by all.
	SetAll
	// DrainGroup drains the group.
	DrainGroup
	// CloseTunnels closes all tunnels there are.
	CloseTunnels
	// SetPlaces replaces the targets by all, of which one has other places.
	SetPlaces
)

// streams of contents that belong to an exchange.
func (e *ExchangePlan) requestBody() Content { return Content{e.Token << 4, e.Body.Length} }
func (e *ExchangePlan) responseBody(attempt int) Content {
	return Content{e.stream(attempt), e.response(attempt).Body.Length}
}
func (e *ExchangePlan) stream(attempt int) uint32 { return e.Token<<4 + 1 + uint32(min(attempt, 5)) }
func (e *ExchangePlan) up() Content               { return Content{e.Token<<4 + 8, e.Tunnel.Up.Length} }
func (e *ExchangePlan) down() Content             { return Content{e.Token<<4 + 9, e.Tunnel.Down.Length} }
