package simulate

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// oddity is a rare or malformed way in which a target of HTTP/1.1 responds.
type oddity struct {
	name string
	fate fate // refused: the client sees no whole response of this attempt; tolerated: it may see it as planned
	// change returns the bytes that are sent in place of the header and the body; whole is a well-formed response.
	change func(o *oddResponse) string
}

// oddResponse is what an oddity is made of.
type oddResponse struct {
	plan   *ExchangePlan
	r      *ResponsePlan
	status string // the status line
	fields string // end-to-end header fields, with their line ends
	body   string
}

// with returns the response with the given framing, and body.
func (o *oddResponse) with(framing, body string) string {
	return o.status + o.fields + framing + "\r\n" + body
}

// length is the Content-Length of the body.
func (o *oddResponse) length() string { return fmt.Sprintf("Content-Length: %d\r\n", len(o.body)) }

// chunked is the body as one chunk, without what ends it.
func (o *oddResponse) chunk() string {
	if o.body == "" {
		return ""
	}
	return fmt.Sprintf("%x\r\n%s\r\n", len(o.body), o.body)
}

const isChunked = "Transfer-Encoding: chunked\r\n"

// line returns an oddity with another status line.
func statusLine(line string) func(*oddResponse) string {
	return func(o *oddResponse) string {
		o.status = line + "\r\n"
		return o.with(o.length(), o.body)
	}
}

// field returns an oddity with one line more in its header.
func field(line string) func(*oddResponse) string {
	return func(o *oddResponse) string { return o.with(o.length()+line+"\r\n", o.body) }
}

// framed returns an oddity with other framing.
func framed(lines ...string) func(*oddResponse) string {
	return func(o *oddResponse) string { return o.with(strings.Join(lines, "\r\n")+"\r\n", o.body) }
}

// oddities lists the odd responses. New ones are added at the end.
var oddities = []oddity{
	{"a body that ends before its length", refused, func(o *oddResponse) string {
		return o.with(fmt.Sprintf("Content-Length: %d\r\n", len(o.body)+1), o.body)
	}},
	{"a chunk size that is none", refused, func(o *oddResponse) string { return o.with(isChunked, o.chunk()+"xyz\r\n") }},
	{"a chunk longer than its size", refused, func(o *oddResponse) string {
		return o.with(isChunked, fmt.Sprintf("%x\r\n%sX\r\n0\r\n\r\n", len(o.body), o.body))
	}},
	{"no last chunk", refused, func(o *oddResponse) string { return o.with(isChunked, o.chunk()) }},
	{"an end in the last chunk", refused, func(o *oddResponse) string { return o.with(isChunked, o.chunk()+"0\r\n") }},
	{"a chunk size beyond 64 bits", refused, func(o *oddResponse) string { return o.with(isChunked, o.chunk()+"10000000000000000\r\n") }},
	{"two lengths", refused, framed("Content-Length: 3", "Content-Length: 5")},
	{"a negative length", refused, framed("Content-Length: -3")},
	{"a length that is no number", refused, framed("Content-Length: 3x")},
	{"an unknown transfer coding", refused, framed("Transfer-Encoding: xchunked")},
	{"a header that is too large", refused, func(o *oddResponse) string { return o.with("X-Large: "+strings.Repeat("a", 100<<10)+"\r\n", "") }},
	{"a field without a colon", refused, field("X-Sent")},
	{"a blank in a field's name", tolerated, field("X Sent: a")},
	{"no status", refused, statusLine("HTTP/1.1")},
	{"a status of two digits", refused, statusLine("HTTP/1.1 20 OK")},
	{"a status that is no number", refused, statusLine("HTTP/1.1 2xx OK")},
	{"another protocol", refused, statusLine("HTTQ/1.1 200 OK")},
	{"101 that was not requested", refused, func(o *oddResponse) string {
		return "HTTP/1.1 101 Switching Protocols\r\n" + o.fields + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x88\x00"
	}},
	{"interim responses that are too large", refused, func(o *oddResponse) string {
		return strings.Repeat("HTTP/1.1 102 Processing\r\nX-Large: "+strings.Repeat("a", 1000)+"\r\n\r\n", 100) + o.with(o.length(), o.body)
	}},
	{"an end in the header", refused, func(o *oddResponse) string { return o.status + o.fields }},
	{"several kinds of interim responses", tolerated, func(o *oddResponse) string {
		return "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 199 Miscellaneous\r\nX-Sent: a\r\n\r\n" + o.with(o.length(), o.body)
	}},
	{"equal lengths", tolerated, func(o *oddResponse) string { return o.with(o.length()+o.length(), o.body) }},
	{"a length beside chunks", tolerated, func(o *oddResponse) string { return o.with("Content-Length: 3\r\n"+isChunked, o.chunk()+"0\r\n\r\n") }},
	{"chunk extensions", tolerated, func(o *oddResponse) string {
		return o.with(isChunked, strings.Replace(o.chunk(), "\r\n", ";a=b\r\n", 1)+"0;c\r\n\r\n")
	}},
	{"a trailer that was not announced", tolerated, func(o *oddResponse) string { return o.with(isChunked, o.chunk()+"0\r\nX-Other: a\r\n\r\n") }},
	{"a trailer of framing", tolerated, func(o *oddResponse) string {
		return o.with(isChunked+"Trailer: Content-Length\r\n", o.chunk()+"0\r\nContent-Length: 3\r\nTransfer-Encoding: gzip\r\n\r\n")
	}},
	{"no reason", tolerated, func(o *oddResponse) string {
		o.status = strings.Join(strings.Fields(o.status)[:2], " ") + "\r\n"
		return o.with(o.length(), o.body)
	}},
	{"bare LFs", tolerated, func(o *oddResponse) string { return strings.ReplaceAll(o.with(o.length(), ""), "\r\n", "\n") + o.body }},
	{"hop-by-hop fields", tolerated, field("Connection: X-Other\r\nX-Other: a\r\nKeep-Alive: timeout=1\r\nProxy-Connection: close\r\nUpgrade: h2c")},
	{"a FIN behind the response", tolerated, func(o *oddResponse) string { return o.with(o.length(), o.body) }},
	{"a response that drips", tolerated, func(o *oddResponse) string { return o.with(o.length(), o.body) }},
}

// maxDrips is the maximum number of pieces of a response that drips.
const maxDrips = 100

// respondOddly sends an odd response and closes the connection.
func (t *target) respondOddly(c *Conn, plan *ExchangePlan, r *ResponsePlan, s *Sight) bool {
	odd := &oddities[r.Odd-1]
	s.Odd = odd
	t.world.journal.manners.Add("target: "+odd.name, 1)
	text := responseHeader(plan, &ResponsePlan{Status: r.Status, Framing: ByLength}, s.Attempt, false)
	o := oddResponse{plan: plan, r: r}
	line, rest, _ := strings.Cut(text, "\r\n")
	o.status = line + "\r\n"
	for field := range strings.SplitSeq(strings.TrimSuffix(rest, "\r\n\r\n"), "\r\n") {
		if !strings.HasPrefix(field, "Content-Length") {
			o.fields += field + "\r\n"
		}
	}
	o.body = string(plan.responseBody(s.Attempt).Bytes(0, r.Body.Length))
	sent := odd.change(&o)
	piece := len(sent)
	if odd.name == "a response that drips" {
		piece = max(1, len(sent)/maxDrips)
	}
	for at := 0; at < len(sent); at += piece {
		if _, err := io.WriteString(c, sent[at:min(len(sent), at+piece)]); err != nil {
			t.note(plan.Token, "odd response: %v", err)
			return false
		}
		if piece < len(sent) {
			t.world.sleep(20 * time.Millisecond)
		}
	}
	t.note(plan.Token, "responded with %s", odd.name)
	s.Responded = odd.fate == tolerated
	return false
}

// recoded reports whether Compress may have encoded an odd response: its length may be unknown although the plan has one.
func (r *ruler) recoded() bool {
	o := r.o
	return o.Attempt >= 0 && o.Attempt < len(r.sights) && r.sights[o.Attempt].Odd != nil && o.Header.Get("Content-Encoding") != ""
}

// oddly: a malformed response never looks whole to the client.
func (r *ruler) oddly() {
	o := r.o
	if o.Attempt < 0 || o.Attempt >= len(r.sights) || r.sights[o.Attempt].Odd == nil {
		return
	}
	if r.w.plan.Gateway.Hedge > 0 && r.safe() {
		return // the response may be the other target's
	}
	odd := r.sights[o.Attempt].Odd
	if odd.fate == refused && o.Whole && !o.ByClose && !r.leftOut(o.Attempt) {
		r.fail("odd", "the client saw a whole response with %s", odd.name)
	}
	if o.Header["X Sent"] != nil {
		r.fail("odd", "the client saw a field with a blank in its name")
	}
	if o.Header.Get("X-Other") != "" || o.Trailer.Get("X-Other") != "" && odd.name == "hop-by-hop fields" {
		r.fail("hop by hop", "the client saw a field that Connection lists: %v", o.Header)
	}
}
