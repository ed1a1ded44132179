package server

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

// sniffLen is how many bytes of a body its type is guessed of, as http.DetectContentType does.
const sniffLen = 512

// fieldsSet is what the handler's fields say that the server decides by.
type fieldsSet struct {
	connection       []string
	transferEncoding string
	contentType      bool
	contentLength    bool // there is the field, perhaps without a value
	contentEncoding  bool
	date             bool
	trailers         []string // announced by the field Trailer
	prefixed         bool     // there are trailers with http.TrailerPrefix
}

// freeze settles the final header: what the handler changes later has no effect, but for trailers.
func (w *writer) freeze(status int) {
	w.mayContinue.Store(false)
	w.status, w.frozen = status, true
	if w.formatted() {
		w.freezeNamed()
		return
	}
	w.out.begin()
	b := w.out.buf
	for name, values := range w.header {
		if w.settle(name, values) {
			b = appendField(b, name, values)
		}
	}
	w.out.buf = append(b, "\r\n"...)
	w.out.bodyAt = len(w.out.buf)
}

// settle notes what a field says. It reports whether the field is sent as it is.
func (w *writer) settle(name string, values []string) bool {
	switch name {
	case "Connection":
		w.set.connection = values
		return false
	case "Transfer-Encoding":
		if len(values) > 0 {
			w.set.transferEncoding = values[0]
		}
		return false
	case "Content-Length":
		w.declare(values)
		return false
	case "Content-Type":
		w.set.contentType = true
		return w.status != http.StatusNotModified || w.formatted()
	case "Content-Encoding":
		w.set.contentEncoding = len(values) > 0 && values[0] != ""
	case "Date":
		w.set.date = true // also without a value: the handler wants none
	case "Trailer":
		w.announce(values)
	default:
		if strings.HasPrefix(name, http.TrailerPrefix) {
			w.set.prefixed = true
			return false
		}
		return !framingField(name)
	}
	return true
}

// framingField reports whether a field whose name is not canonical would declare where the response ends.
func framingField(name string) bool {
	switch len(name) {
	case len("Connection"):
		return strings.EqualFold(name, "Connection")
	case len("Content-Length"):
		return strings.EqualFold(name, "Content-Length")
	case len("Transfer-Encoding"):
		return strings.EqualFold(name, "Transfer-Encoding")
	}
	return false
}

// declare notes the Content-Length.
func (w *writer) declare(values []string) {
	w.set.contentLength = true
	if len(values) == 0 || values[0] == "" {
		return
	}
	n, err := strconv.ParseUint(strings.Trim(values[0], " \t"), 10, 63)
	if err != nil {
		w.x.c.server.logf("http: invalid Content-Length of %q", values[0])
		return
	}
	w.declared = int64(n)
}

// announce notes the names of trailers.
func (w *writer) announce(values []string) {
	for _, line := range values {
		for name := range strings.SplitSeq(line, ",") {
			name = http.CanonicalHeaderKey(textproto.TrimString(name))
			if httpguts.ValidTrailerHeader(name) && name != "" {
				w.set.trailers = append(w.set.trailers, name)
			}
		}
	}
}

// appendField appends the lines of a field. A name that is none is left out, and what would end a line is a blank: the
// handler has no way to learn of an error.
func appendField(b []byte, name string, values []string) []byte {
	for _, value := range values {
		b = appendLine(b, name, value)
	}
	return b
}

// appendLine is appendField for one line.
func appendLine(b []byte, name, value string) []byte {
	if !httpguts.ValidHeaderFieldName(name) {
		return b
	}
	b = append(append(b, name...), ": "...)
	b = appendValue(b, textproto.TrimString(value))
	return append(b, "\r\n"...)
}

func appendValue(b []byte, value string) []byte {
	if strings.IndexByte(value, '\n') < 0 && strings.IndexByte(value, '\r') < 0 && strings.IndexByte(value, 0) < 0 {
		return append(b, value...)
	}
	for i := range len(value) {
		switch c := value[i]; c {
		case '\r', '\n', 0: // RFC 9110 section 5.5
			b = append(b, ' ')
		default:
			b = append(b, c)
		}
	}
	return b
}

// commit makes the rest of the header. final is set if the handler has returned: what is buffered is the whole body. The
// caller holds w.mu, or the handler has returned.
func (w *writer) commit(final bool) {
	w.committed = true
	if !final {
		w.x.body.settle()
	}
	allowed := bodyAllowed(w.status)
	body := w.out.body()
	coding := w.set.transferEncoding
	measured := !w.format.Unmeasured
	if final && measured && allowed && !w.set.contentLength && coding == "" && w.set.trailers == nil && !w.set.prefixed && !w.lateTrailers() {
		if n := int64(len(body)); n == w.written && (!w.head || n > 0) { // of HEAD the handler may have written nothing, or a part
			w.declared = n
		}
	}
	if w.declared != -1 && coding != "" && coding != "identity" {
		w.x.c.server.logf("http: WriteHeader called with both Transfer-Encoding of %q and a Content-Length of %d", coding, w.declared)
		w.declared = -1
	}
	connection := w.settleConnection(final, allowed)
	var scratch [4 * frontRoom]byte
	b := scratch[:0]
	if w.formatted() {
		w.out.putHeader(w.appendNamed(b, body, allowed, connection))
	} else {
		w.out.putFront(w.appendFront(b, body, allowed, connection))
	}
	if w.head || !allowed {
		w.out.buf = w.out.buf[:w.out.bodyAt]
	}
}

// appendFront appends the status line and the fields that the server adds.
func (w *writer) appendFront(b, body []byte, allowed bool, connection string) []byte {
	b = appendStatusLine(b, w.http11, w.status)
	if w.declared != -1 && allowed {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), w.declared, 10), "\r\n"...)
	}
	if allowed && !w.head && w.declared == -1 {
		b, connection = w.frame(b, connection)
	}
	b = w.appendSniffed(b, body, allowed)
	if !w.set.date {
		b = appendDate(b)
	}
	if connection != "" {
		b = append(append(append(b, "Connection: "...), connection...), "\r\n"...)
	} else {
		b = appendField(b, "Connection", w.set.connection)
	}
	return b
}

// appendSniffed appends the Content-Type that the server guesses of the body, if it is to guess.
func (w *writer) appendSniffed(b, body []byte, allowed bool) []byte {
	if !allowed || w.set.contentType || w.set.contentEncoding || w.set.transferEncoding != "" || len(body) == 0 {
		return b
	}
	return appendLine(b, "Content-Type", http.DetectContentType(body[:min(len(body), sniffLen)]))
}

// settleConnection decides whether the connection ends with the response. It returns the field Connection that says so, ""
// for the handler's own.
func (w *writer) settleConnection(final, allowed bool) (field string) {
	x := w.x
	keep := x.c.server.keepAlives()
	own := w.set.connection
	switch {
	case w.wants10KeepAlive && (w.head || w.declared != -1 || !allowed):
		if own == nil {
			field = "keep-alive"
		}
	case !w.http11 || w.wantsClose:
		w.close = true
	}
	w.close = w.close || len(own) > 0 && own[0] == "close" || !keep || w.closeAfter.Load() || x.body.awaited() || x.body.broken.Load() ||
		final && x.body.tooLong() || w.status == http.StatusSwitchingProtocols
	if w.close {
		return w.closeField()
	}
	return field
}

// closeField returns the field Connection of a response that the connection ends with, "" for the handler's own.
func (w *writer) closeField() string {
	own := w.set.connection
	switch {
	case w.status == http.StatusSwitchingProtocols,
		len(own) > 0 && httpguts.HeaderValuesContainsToken(own[:1], "close"):
		return ""
	case !w.http11:
		w.set.connection = nil // of HTTP/1.0 that is the default
		return ""
	}
	return "close"
}

// frame decides how a body ends whose length is not known.
func (w *writer) frame(b []byte, connection string) ([]byte, string) {
	coding := w.set.transferEncoding
	if !w.http11 || coding == "identity" {
		w.untilEnd, w.close = true, true
		return b, w.closeField()
	}
	w.chunked = true
	if coding != "" && coding != "chunked" {
		b = appendField(b, "Transfer-Encoding", []string{coding})
	}
	return append(b, "Transfer-Encoding: chunked\r\n"...), connection
}

func appendStatusLine(b []byte, http11 bool, status int) []byte {
	if http11 {
		b = append(b, "HTTP/1.1 "...)
	} else {
		b = append(b, "HTTP/1.0 "...)
	}
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	if text := http.StatusText(status); text != "" {
		b = append(b, text...)
	} else {
		b = strconv.AppendInt(append(b, "status code "...), int64(status), 10)
	}
	return append(b, "\r\n"...)
}

// writeInterim writes an interim response at once. The caller holds w.mu.
func (w *writer) writeInterim(status int) {
	if status == http.StatusContinue {
		w.mayContinue.Store(false)
		w.continued.Store(true)
	}
	b := appendStatusLine(make([]byte, 0, 512), w.http11, status)
	for name, values := range w.header {
		if name == "Connection" || !framingField(name) {
			b = appendField(b, name, values)
		}
	}
	w.write(append(b, "\r\n"...))
}

// lateTrailers reports whether the handler has set trailers with http.TrailerPrefix behind the header, which a response with
// a length does not send. Clients of HTTP/1.0 receive none.
func (w *writer) lateTrailers() bool {
	if w.http11 {
		for name := range w.header {
			if strings.HasPrefix(name, http.TrailerPrefix) {
				return true
			}
		}
	}
	return false
}

// appendLastChunk appends the last chunk and the trailers.
func (w *writer) appendLastChunk(b []byte) []byte {
	b = append(b, "0\r\n"...)
	if w.formatted() {
		for name, value := range w.format.Names.Lines(w.trailers()) {
			b = appendLine(b, name, value)
		}
		return append(b, "\r\n"...)
	}
	for name, values := range w.trailers() {
		b = appendField(b, name, values)
	}
	return append(b, "\r\n"...)
}

// trailers returns those that the handler has set; nil if there are none.
func (w *writer) trailers() (trailers http.Header) {
	for name, values := range w.header {
		trailer, prefixed := strings.CutPrefix(name, http.TrailerPrefix)
		if prefixed && httpguts.ValidTrailerHeader(trailer) || slices.Contains(w.set.trailers, name) {
			if trailers == nil {
				trailers = make(http.Header)
			}
			trailers[trailer] = append(trailers[trailer], values...)
		}
	}
	return trailers
}

// date is the text of the field Date, for a second.
type date struct {
	second int64
	line   string
}

var lastDate atomic.Pointer[date]

func appendDate(b []byte) []byte {
	now := time.Now()
	d := lastDate.Load()
	if d == nil || d.second != now.Unix() {
		d = &date{now.Unix(), "Date: " + now.UTC().Format(http.TimeFormat) + "\r\n"}
		lastDate.Store(d)
	}
	return append(b, d.line...)
}
