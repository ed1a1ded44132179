package simulate

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// BadStream is a stream that a client by frames opens in addition to those of its requests.
type BadStream struct {
	Before int // the index of the request before which it is opened
	Kind   int // index in badStreams
	Resets int // if not 0, this many well-formed requests are sent and reset at once in its place
}

// badStream is a request that is malformed by RFC 9113 sections 8.1.1 to 8.3. One with a body may reach a target, but
// never as a whole request; the others reach no target.
type badStream struct {
	name   string
	change func(list []hpack.HeaderField) []hpack.HeaderField
	body   bool   // the request is one for /0 that carries halfField
	data   string // "": the stream ends with its header
	server bool   // net/http's server responds to it by itself, with a page
}

// halfField marks requests that no target may see as whole ones.
const halfField = "X-Half"

// withField adds a field.
func withField(name, value string) func([]hpack.HeaderField) []hpack.HeaderField {
	return func(list []hpack.HeaderField) []hpack.HeaderField {
		return append(list, hpack.HeaderField{Name: name, Value: value})
	}
}

// withFirst inserts a field before all others.
func withFirst(name, value string) func([]hpack.HeaderField) []hpack.HeaderField {
	return func(list []hpack.HeaderField) []hpack.HeaderField {
		return append([]hpack.HeaderField{{Name: name, Value: value}}, list...)
	}
}

// without removes a field.
func without(name string) func([]hpack.HeaderField) []hpack.HeaderField {
	return func(list []hpack.HeaderField) []hpack.HeaderField {
		return slices.DeleteFunc(list, func(f hpack.HeaderField) bool { return f.Name == name })
	}
}

// withValue gives a field another value.
func withValue(name, value string) func([]hpack.HeaderField) []hpack.HeaderField {
	return func(list []hpack.HeaderField) []hpack.HeaderField {
		return append([]hpack.HeaderField{{Name: name, Value: value}}, without(name)(list)...)
	}
}

// badStreams are the malformed requests. New ones stand at the end.
var badStreams = []badStream{
	{name: "an upper-case name", change: withField("X-Upper", "a")},
	{name: "a connection field", server: true, change: withField("connection", "keep-alive")},
	{name: "keep-alive", server: true, change: withField("keep-alive", "timeout=5")},
	{name: "proxy-connection", server: true, change: withField("proxy-connection", "keep-alive")},
	{name: "a transfer coding", server: true, change: withField("transfer-encoding", "chunked")},
	{name: "an upgrade", server: true, change: withField("upgrade", "websocket")},
	{name: "te other than trailers", server: true, change: withField("te", "gzip")},
	{name: "no :method", change: without(":method")},
	{name: "no :scheme", change: without(":scheme")},
	{name: "no :path", change: without(":path")},
	{name: "an empty :path", change: withValue(":path", "")},
	{name: "a :path without a slash", change: withValue(":path", fmt.Sprint(unknownToken))},
	{name: "two :method", change: withFirst(":method", "GET")},
	{name: "two :path", change: withFirst(":path", fmt.Sprint("/", unknownToken+1))},
	{name: "two :authority", change: withFirst(":authority", "other.test")},
	{name: "a pseudo field behind a field", change: func(list []hpack.HeaderField) []hpack.HeaderField {
		return append([]hpack.HeaderField{{Name: "x-sent", Value: "a"}}, list...)
	}},
	{name: "an unknown pseudo field", change: withFirst(":token", "a")},
	{name: "a pseudo field of responses", change: withFirst(":status", "200")},
	{name: "NUL in a value", change: withField("x-sent", "a\x00b")},
	{name: "CR LF in a value", change: withField("x-sent", "a\r\nx-other: b")},
	{name: "a blank in a name", change: withField("x sent", "a")},
	{name: "an empty name", change: withField("", "a")},
	{name: "DATA shorter than content-length", body: true, change: withField("content-length", "10"), data: "12345"},
	{name: "DATA longer than content-length", body: true, change: withField("content-length", "5"), data: "1234567890"},
	{name: "a content-length without DATA", body: true, change: withField("content-length", "5")},
	{name: "a content-length that is no number", body: true, change: withField("content-length", "3x"), data: "123"},
	{name: "two content-lengths that differ", body: true, change: func(list []hpack.HeaderField) []hpack.HeaderField {
		return append(list, hpack.HeaderField{Name: "content-length", Value: "3"}, hpack.HeaderField{Name: "content-length", Value: "5"})
	}, data: "123"},
	{name: "DATA behind a content-length of 0", body: true, change: withField("content-length", "0"), data: "12345"},
}

// unknownToken is one that no request has: a target that sees it breaks a rule.
const unknownToken = 800_000_000

// addBad chooses clients by frames that open bad streams.
func (p *Plan) addBad(c *Choices) {
	for i := range p.Clients {
		client := &p.Clients[i]
		if client.Kind != Frames || !c.Bool(3) {
			continue
		}
		for range 1 + c.Int(4) {
			bad := BadStream{Before: c.Int(len(client.Requests)), Kind: c.Int(len(badStreams))}
			if c.Bool(5) {
				bad.Resets = 1 + c.Int(150)
			}
			client.Frames.Bad = append(client.Frames.Bad, bad)
		}
	}
}

// openBad opens the bad streams before the nth request.
func (f *frameConn) openBad(n int, scheme string) {
	for _, b := range f.plan.Bad {
		switch {
		case b.Before != n:
		case b.Resets > 0:
			f.world.journal.manners.Add("frames: RST_STREAM at once", b.Resets)
			for range b.Resets {
				if s := f.open(badFields(scheme, "GET", "/0"), true); s != nil {
					s.resetWith(http2.ErrCodeCancel)
				}
			}
		default:
			f.world.journal.manners.Add("frames: "+badStreams[b.Kind].name, 1)
			f.openMalformed(&badStreams[b.Kind], scheme)
		}
	}
}

// badFields returns the header section of a request that is not in the plan.
func badFields(scheme, method, path string) []hpack.HeaderField {
	return []hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: scheme}, {Name: ":authority", Value: "gateway.test"}, {Name: ":path", Value: path}}
}

// openMalformed sends a malformed request. Its response is checked when the connection ends.
func (f *frameConn) openMalformed(b *badStream, scheme string) {
	fields := badFields(scheme, "GET", fmt.Sprint("/", unknownToken))
	if b.body {
		fields = append(badFields(scheme, "POST", "/0"), hpack.HeaderField{Name: strings.ToLower(halfField), Value: "1"})
	}
	s := f.open(b.change(fields), b.data == "")
	if s == nil {
		return
	}
	f.bad = append(f.bad, s)
	s.name = b.name
	if b.data != "" {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = f.framer.WriteData(s.id, true, []byte(b.data)) // within any window that a server of net/http's opens with
		s.sentEnd, s.room, f.room = true, s.room-int64(len(b.data)), f.room-int64(len(b.data))
	}
}

// badField finds the first field of a header section that is malformed, by itself or by its position.
type badField struct {
	regular bool // a regular field was sent before
	end     int  // where that field ends in the block; 0: there is none
}

// look examines the next field, which ends at end in the block.
func (b *badField) look(f hpack.HeaderField, end int) {
	pseudo := strings.HasPrefix(f.Name, ":")
	name := pseudo && !b.regular || !pseudo && httpguts.ValidHeaderFieldName(f.Name) && f.Name == strings.ToLower(f.Name)
	if b.end == 0 && !(name && httpguts.ValidHeaderFieldValue(f.Value)) {
		b.end = end
	}
	b.regular = b.regular || !pseudo
}

// continued reports whether a CONTINUATION follows the whole field if the block is sent in pieces of size. Then the server
// ends the connection (net/http's framer stops counting the section's bytes after such a field), else only the stream.
func (b *badField) continued(block, size int) bool { return b.end > 0 && b.end <= (block-1)/size*size }

// hasSpoilt reports whether a section that ends the connection was sent.
func (f *frameConn) hasSpoilt() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spoilt
}

// checkBad checks that each response to a malformed request is a refusal.
func (f *frameConn) checkBad() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.bad {
		if s.status != 0 && !slices.Contains(refusals, s.status) && !slices.Contains([]int{http.StatusBadGateway}, s.status) {
			f.world.journal.Break("malformed", "%s: a request with %s has the response %d", f.name, s.name, s.status)
		}
	}
}

// noteHalf reads the body of a request that is not in the plan, and breaks a rule if a malformed request looks whole.
func (t *target) noteHalf(req *http.Request) {
	if _, err := io.Copy(io.Discard, req.Body); err == nil && req.Header.Get(halfField) != "" {
		t.world.journal.Break("malformed", "%s saw a malformed request of HTTP/2 as a whole one", t.plan.Addr)
	}
}
