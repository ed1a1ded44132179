package simulate

import (
	"fmt"
	"net/http"
	"sort"
	"strings"
	"sync"
	"time"
)

// Journal records what the parties of a history saw, in the order of virtual time.
type Journal struct {
	start     time.Time
	exchanges map[uint32]*ExchangePlan // by token; never changed

	mu       sync.Mutex
	lines    []line
	sights   map[uint32][]*Sight
	outcomes map[uint32]*Outcome
	broken   []Broken
	passages []*Passage
	events   []groupEvent
	samples  []sample
	probes   map[string]bool // targets that have seen a probe at the end
	unclear  bool            // the model of the group could not follow the history
	listed   map[uint32]int  // how many lists were sent for a watch that continues, by token
	crossed  map[uint32]bool // requests that were on their way to a target when it sent a response to none, by token
	lost     map[string]bool // targets at whose link such a request was lost, by address

	taken map[uint32][]takenConn // by net/http's transport, by token

	errors  map[uint32]int // how often OnError was called, by token
	faults  Tally          // that happened, by kind
	effects Tally          // what filters have done, by kind
	manners Tally          // of clients and targets that were met, by kind
}

type line struct {
	at   time.Duration
	who  string
	what string
}

// Broken is a rule that did not hold.
type Broken struct {
	Rule string
	What string
}

// String returns the rule and what broke it.
func (b Broken) String() string { return b.Rule + ": " + b.What }

// Sight is a request as a target saw it.
type Sight struct {
	Target    string
	Attempt   int // of this token, from 0
	At        time.Time
	Ended     time.Time
	Line      string // the request line
	Header    http.Header
	Names     []string  // of the fields as they were spelt, over HTTP/1
	Got       int64     // bytes of the body
	Bad       error     // its first difference
	Whole     bool      // the body's end was read
	ReadEnd   time.Time // when the body's end had arrived, or what cut it; zero: neither has, or nothing was read
	Trailer   http.Header
	Responded bool      // the whole response was written
	BrokeOff  bool      // the target broke its response off
	Opened    time.Time // the connection, at the target
	From      string    // the gateway's address of the connection
	Client    introduction
	Kept      bool    // the connection had carried a request before
	Wrote     bool    // the target has written a byte, perhaps of an interim response
	Response  begunAt // where its bytes begin, on a connection that carries no others meanwhile
	Upgrade   bool
	Tunnel    *Checker
	Odd       *oddity // how the response is odd, nil if it is not
	// Unprocessed: the target has signalled that it has not processed the request (RFC 9113 section 8.7).
	Unprocessed bool
	Reset       bool // the target has reset only the stream, perhaps after other frames, and has begun no response
	reset       lastWord
	NoError     bool // RST_STREAM with NO_ERROR followed the response, for the rest of the request
	TunnelEnd   error
}

// Outcome is a request as its client saw it.
type Outcome struct {
	Sent      time.Time
	SentWhole bool // the request was written to its end
	Ended     time.Time
	Status    int
	Attempt   int // which response, -1: one of the gateway's own
	Header    http.Header
	Names     []string // of the fields as they were spelt, over HTTP/1
	Got       int64
	Bad       error
	Whole     bool // the response looks complete
	ByClose   bool // it ended with the connection
	Trailer   http.Header
	Err       error // why the client saw no more
	Interim   int
	LeftAlone bool // the client gave up
	Responses int
	Raw       []byte    // the content as it came, where filters change it
	Collected bool      // Raw is all that came
	Continued bool      // a 100 was received
	ReadFrom  time.Time // when the client began to read, where it waited before
	Read      int       // bytes of the response, as they came, interim ones included; of a client that does not pipeline
	Behind    *Outcome  // of the request before on the same connection, of a client of HTTP/1 that does not pipeline

	Spoilt bool // the connection had carried a field for which net/http's server ends it (badField)

	expectation *expectation
	Tunnel      *Checker
	TunnelEnd   error
}

// NewJournal returns an empty journal.
func NewJournal() *Journal {
	return &Journal{sights: map[uint32][]*Sight{}, outcomes: map[uint32]*Outcome{}, errors: map[uint32]int{}, crossed: map[uint32]bool{}, lost: map[string]bool{}, taken: map[uint32][]takenConn{}, listed: map[uint32]int{}}
}

// Note adds a line to the timeline.
func (j *Journal) Note(who, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line{time.Since(j.start), who, fmt.Sprintf(format, args...)})
}

// Break notes a broken rule.
func (j *Journal) Break(rule, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	what := fmt.Sprintf(format, args...)
	j.broken = append(j.broken, Broken{rule, what})
	j.lines = append(j.lines, line{time.Since(j.start), "RULE", rule + ": " + what})
}

// breakAt notes a broken rule of a moment. The caller holds j.mu.
func (j *Journal) breakAt(at time.Duration, rule, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	j.broken = append(j.broken, Broken{rule, what})
	j.lines = append(j.lines, line{at, "RULE", rule + ": " + what})
}

// told records a call of OnError.
func (j *Journal) told(path string) {
	token, _ := tokenOf(path)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.errors[token]++
}

// sight adds a Sight of a request, and numbers the attempt.
func (j *Journal) sight(token uint32, s *Sight) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.Attempt = len(j.sights[token])
	j.sights[token] = append(j.sights[token], s)
}

// outcome adds the Outcome of a request.
func (j *Journal) outcome(token uint32) *Outcome {
	j.mu.Lock()
	defer j.mu.Unlock()
	o := &Outcome{Attempt: -1, Sent: time.Now(), expectation: newExpectation()}
	j.outcomes[token] = o
	return o
}

// Timeline is the history for a reader.
func (j *Journal) Timeline() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := append([]line(nil), j.lines...)
	sort.SliceStable(lines, func(a, b int) bool { return lines[a].at < lines[b].at })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%14.6fs  %-12s %s\n", l.at.Seconds(), l.who, l.what)
	}
	return b.String()
}
