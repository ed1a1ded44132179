package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// FuzzServers sends bytes to both servers over one connection each, cut into pieces, and compares what the handler has
// seen and what the client has received until the server has closed the connection.
func FuzzServers(f *testing.F) {
	for _, raw := range fuzzSeeds() {
		f.Add([]byte(raw+probe), []byte{}, byte(0))
		f.Add([]byte(raw+get), []byte{0, 1, 40}, byte(len(raw)))
	}
	f.Add([]byte("POST * HTTP/1.1\nHost:\n\n\r\n"), []byte{}, byte(readBehindHeader))
	f.Fuzz(func(t *testing.T, raw, cuts []byte, mode byte) {
		if len(raw) > 64<<10 {
			return
		}
		outcomes := make([]*outcome, len(kinds))
		for i, k := range kinds {
			synctest.Test(t, func(t *testing.T) { outcomes[i] = k.outcomeOf(t, raw, cuts, mode) })
		}
		for _, o := range outcomes[1:] {
			if difference := compare(outcomes[0], o, string(raw)+fuzzEnd, mode); difference != "" {
				t.Errorf("mode %d, %q in %v: %s\n%s\n%s", mode, raw, cuts, difference, outcomes[0], o)
			}
		}
	})
}

// fuzzSeeds are the requests of the other tests.
func fuzzSeeds() (seeds []string) {
	for _, row := range requestRows {
		seeds = append(seeds, row.request)
	}
	for _, row := range refusals {
		seeds = append(seeds, row.request)
	}
	for _, body := range badChunks {
		seeds = append(seeds, chunked+body)
	}
	seeds = append(seeds, found...)
	seeds = append(seeds, expecting+"hi", get+get, last+get, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n"+get,
		strings.Replace(get, "\r\n\r\n", "\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", 1)+"early")
	return slices.DeleteFunc(seeds, func(s string) bool { return len(s) > 10_000 })
}

// found are inputs for which the servers have differed.
var found = []string{"0", "\n0", "0 0 HTTP/0.0\n00", "0 * HTTP/1.0", "0 * HTTP/1.0\nExpect:0", "0 * HTTP/1.1\nHost:\nContent-Length:70",
	"0 * HTTP/1.1\nHost:\nTransfer-Encoding:Chunked", "0 * HTTP/1.1\nHost:\nTransfer-Encoding:Chunked\n\n0;\x00",
	"0 * HTTP/1.1\nHost:\nTransfer-Encoding:Chunked\n\n0 ", "0 * HTTP/1.1\nHost:\nTransfer-Encoding:Chunked\n\n0\r\n\n",
	"0 * HTTP/1.1\nHost:\nTransfer-Encoding:Chunked\n\n0\r\n0 0:", "0 * HTTP/1.1\nHost:\nExpect:100-Continue 0\n\n00",
	"0 * HTTP/1.1\nHost:\nExpect:100-Continue\nContent-Length:2\n\n00", "0 * HTTP/1.1\nHost:\nConnection:0 Close\n\n",
	"0 * HTTP/1.1\nHost:\nConnection:: Close\n\n", chunked + "0\r\nX: " + strings.Repeat("x", 5_000) + "\r\n\r\n" + get,
	"0 * HTTP/1.1\nHost:\nContent-Length:1\n\n"}

// outcome is what one server has done.
type outcome struct {
	kind    kind
	saw     []string // the requests, as the handler saw them
	replies []string
	early   bool // the server has ended the connection while more of a request could come
}

func (o *outcome) String() string {
	return fmt.Sprintf("%s:\n\tsaw %q\n\treplies %.1000q\n\tended early: %v", o.kind, o.saw, o.replies, o.early)
}

// fuzzEnd is sent behind the bytes: it ends a header section, and is a malformed request where the server waits for
// one.
const fuzzEnd = "\r\n\r\n"

// outcomeOf is called in a bubble.
func (k kind) outcomeOf(t *testing.T, raw, cuts []byte, mode byte) *outcome {
	o := &outcome{kind: k}
	var methods []string
	c, _ := k.inBubble(t, &http.Server{DisableGeneralOptionsHandler: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods = append(methods, r.Method)
		i := len(o.saw)
		o.saw = append(o.saw, "unfinished")
		o.saw[i] = fuzzMode(mode).serve(w, r)
	})})
	received := ""
	for len(raw) > 0 {
		n := len(raw)
		if len(cuts) > 0 {
			n, cuts = min(n, int(cuts[0])+1), cuts[1:]
		}
		_, _ = c.Write(raw[:n]) // an error: the server has closed the connection
		received += c.received()
		raw = raw[n:]
	}
	received += c.after(time.Minute)
	o.early = c.closed()
	_, _ = io.WriteString(c, fuzzEnd)
	received += c.after(time.Minute)
	_ = c.CloseWrite()
	received += c.after(time.Minute)
	if !c.closed() {
		t.Errorf("%s: the connection does not end", k)
	}
	o.replies = replies(received, methods...)
	return o
}

// fuzzMode is what the handler does: bits 0 and 1 are what it reads, bits 2 to 4 what it writes, bit 5 that it takes
// connections of requests with Upgrade.
type fuzzMode byte

const (
	readAll = iota
	readNothing
	readByte
	readBehindHeader
)

func (m fuzzMode) serve(w http.ResponseWriter, r *http.Request) (saw string) {
	if m&0x20 != 0 && r.Header.Get("Upgrade") != "" {
		return echoRaw(w, r)
	}
	switch m & 3 {
	case readAll:
		saw = broken.ReplaceAllString(described(r), " broken")
		m.write(w)
	case readNothing:
		m.write(w)
		saw = headerOf(r)
	case readByte:
		n, err := io.ReadFull(r.Body, make([]byte, 1))
		saw = fmt.Sprintf("%s, %d, read: %v", headerOf(r), n, err == nil)
		m.write(w)
	case readBehindHeader:
		_ = http.NewResponseController(w).EnableFullDuplex()
		saw = headerOf(r)
		w.Header().Set("X-Duplex", "1")
		flush(w)
		body, err := io.ReadAll(r.Body)
		saw += fmt.Sprintf(", %q, read: %v", body, err == nil)
		m.write(w)
	}
	return saw
}

// broken is the end of a request whose body is.
var broken = regexp.MustCompile(` (unexpected EOF|error)$`)

func headerOf(r *http.Request) string {
	return fmt.Sprintf("%s %s %q %d [%s] close: %v.", r.Method, r.RequestURI, r.Host, r.ContentLength, fields(r.Header), r.Close)
}

// echoRaw takes the connection and sends back what is read from it.
func echoRaw(w http.ResponseWriter, r *http.Request) string {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Sprintf("%s: Hijack: %v", headerOf(r), err)
	}
	defer conn.Close()
	early, _ := io.ReadAll(bufio.NewReader(rw))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n%s", early)
	return fmt.Sprintf("%s, taken: %q", headerOf(r), early)
}

func (m fuzzMode) write(w http.ResponseWriter) {
	switch m >> 2 & 7 {
	case 1:
		write("hello")(w)
	case 2:
		set(write("hello"), "Content-Length", "5")(w)
	case 3:
		set(func(w http.ResponseWriter) { write("hello")(w); flush(w); set(nothing, "X-T", "1")(w) }, "Trailer", "X-T")(w)
	case 4:
		write(strings.Repeat("much ", 20_000))(w)
	case 5:
		w.WriteHeader(http.StatusNoContent)
	case 6:
		set(status(http.StatusEarlyHints, status(http.StatusNotFound, write("none"))), "Link", "a")(w)
	case 7:
		set(write("hello"), "Connection", "close")(w)
	}
}

// difference is one that package server's documentation names.
type difference struct {
	why string
	raw *regexp.Regexp // of input that it may concern
}

// differences are those of package server that refuses what net/http's server serves.
var differences = []difference{
	{folded, regexp.MustCompile(`\n[ \t]`)},
	{both, regexp.MustCompile(`(?is)(content-length.*transfer-encoding|transfer-encoding.*content-length)`)},
	{oldCoding, regexp.MustCompile(`(?is)HTTP/1\.0.*\ntransfer-encoding`)},
	{prefaceName, regexp.MustCompile(`PRI \* HTTP/2\.0`)},
	{"blanks in the lines of chunks and in the names of trailers", regexp.MustCompile(`(?is)transfer-encoding.*\n[^\n:;]*[ \t][^\n]*\n`)},
	{"bare LF in place of the last line", regexp.MustCompile(`(?is)transfer-encoding.*\r\n([^\n]*[^\r\n])?\n`)},
	{otherExpectation, regexp.MustCompile(`(?i)expect:[^\n]*(\S[^\n]*100-continue|100-continue[^\n]*\S)`)},
	{"a control character in an extension of a chunk", regexp.MustCompile(`(?is)transfer-encoding.*;[^\n]*[\x00-\x08\x0b-\x1f\x7f][^\n]`)},
}

// unfinished matches what ends with an empty line where a request line is expected: two line ends behind a POST are
// ignored, fuzzEnd's perhaps, so that its last one is the beginning of a header.
var unfinished = regexp.MustCompile(`(?s)POST .*[\r\n]\r\n\r\n$`)

// wordsOfConnection matches a Connection with an element of several words.
var wordsOfConnection = regexp.MustCompile(`(?i)connection:[^\n]*[^\s,][ \t]+[^\s,]`)

// chunkedCoding matches what may be a chunked body.
var chunkedCoding = regexp.MustCompile(`(?i)\ntransfer-encoding`)

// compare returns how own differs from what net/http's server has done, "" where it does not or only as documented.
func compare(standard, own *outcome, raw string, mode byte) string {
	incomplete := mode&3 != readAll || own.endsBroken()
	standard.replies, own.replies = settled(standard.replies, incomplete), settled(own.replies, incomplete)
	seen, received := common(standard.saw, own.saw), common(standard.replies, own.replies)
	if seen == len(standard.saw) && seen == len(own.saw) && received == len(standard.replies) && received == len(own.replies) {
		return ""
	}
	if mode&3 != readAll && seen == len(own.saw) && received == len(own.replies) && (own.endsBroken() || own.early && own.endsWithBody()) {
		// net/http's server looks for a request behind a broken body if the header of the response was sent before, and
		// waits without end for the rest of a body that the handler leaves.
		return ""
	}
	if mode&3 != readAll && seen == len(standard.saw) && received == len(standard.replies) && strings.Contains(strings.ToLower(raw), "100-continue") {
		return "" // net/http's server closes the connection behind each body that it has requested and the handler has not read
	}
	if !standard.early && received == len(standard.replies) && slices.Equal(own.replies[received:], []string{"refused"}) {
		return "" // net/http's server looks at a request once it has four bytes of it, and fuzzEnd may be the end of a body
	}
	if seen == len(standard.saw) && seen == len(own.saw) && received == len(own.replies) && unfinished.MatchString(raw) &&
		slices.Equal(standard.replies[received:], []string{"refused"}) {
		return "" // net/http's server refuses a request line before the rest of its header was received
	}
	if wordsOfConnection.MatchString(raw) {
		return "" // net/http's server finds close and keep-alive as words, also where they are no element of the list (RFC 9110 section 7.6.1)
	}
	if len(raw) > 4<<10 && chunkedCoding.MatchString(raw) && standard.stricter(seen, received) {
		return "" // net/http's server refuses trailers of more than its buffer of 4 KiB
	}
	for _, d := range differences {
		if d.raw.MatchString(raw) && own.stricter(seen, received) {
			return ""
		}
	}
	return fmt.Sprintf("alike up to request %d and response %d", seen, received)
}

// stricter reports whether o is one in which the server has refused a request, or its body, and has closed the
// connection, behind the given numbers of requests and responses as the other server's.
func (o *outcome) stricter(seen, received int) bool {
	return len(o.replies)-received <= 1 && (len(o.saw) == seen || len(o.saw) == seen+1 && o.endsBroken())
}

// endsBroken reports whether the last request's body was broken.
func (o *outcome) endsBroken() bool {
	if len(o.saw) == 0 {
		return false
	}
	last := o.saw[len(o.saw)-1]
	return strings.HasSuffix(last, " broken") || strings.HasSuffix(last, " read: false")
}

// endsWithBody reports whether the last request had a body.
func (o *outcome) endsWithBody() bool {
	return len(o.saw) > 0 && !strings.Contains(o.saw[len(o.saw)-1], "\" 0 [")
}

// common returns how many elements a and b begin with that are alike.
func common(a, b []string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// refusalOf matches a refusal. The handler's own error is a 404.
var refusalOf = regexp.MustCompile(`(?s)^HTTP/1.[01] (40[0-35-9]|4[1-9]\d|5\d\d) .*`)

// settled returns the responses without the texts of refusals and without their status, since a request may have two
// faults; and if a body is incomplete without Connection: close: net/http's server reads the rest of a body before it
// sends the header, and forgets an end that came too early. Interim responses to clients of HTTP/1.0 are left out.
func settled(replies []string, incomplete bool) []string {
	all := slices.DeleteFunc(slices.Clone(replies), func(s string) bool { return strings.HasPrefix(s, "HTTP/1.0 1") })
	for i := range all {
		all[i] = refusalOf.ReplaceAllString(all[i], "refused")
		if incomplete {
			all[i] = strings.Replace(all[i], "|Connection: close", "", 1)
		}
	}
	return all
}
