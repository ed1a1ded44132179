package server

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/fieldnames"
)

// namedRoom is frontRoom for a header that stands in front of the body as a whole.
const namedRoom = 1 << 10

// FormatHeader implements clientside.Formatter.
func (w *writer) FormatHeader(f fieldnames.Format) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.left && !w.frozen && f.Names != nil {
		w.format = &f
	}
}

// HeaderFormat implements clientside.Formatter.
func (w *writer) HeaderFormat() (f fieldnames.Format) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.format != nil {
		f = *w.format
	}
	return f
}

// freezeNamed is freeze for a header that is written in the order of w.format.
func (w *writer) freezeNamed() {
	w.fields = make(http.Header, len(w.header))
	for name, values := range w.header {
		if w.settle(name, values) {
			w.fields[name] = slices.Clone(values)
		}
	}
	w.out.begin(namedRoom)
}

// ownPlace reports whether the server has a field of its own where the field of this name stands.
func ownPlace(key string) bool {
	return key == "Content-Length" || key == "Transfer-Encoding" || key == "Connection"
}

// appendNamed appends the header section as w.format has it.
func (w *writer) appendNamed(b, body []byte, allowed bool, connection string) []byte {
	f := w.format
	b = w.appendFormattedStatus(b)
	framing, connection := w.appendFraming(nil, allowed, connection)
	if w.sniffs(body, allowed) {
		w.fields["Content-Type"] = []string{http.DetectContentType(body[:min(len(body), sniffLen)])}
	}
	if !w.set.date {
		date := appendDate(nil)
		w.fields["Date"] = []string{string(date[len("Date: ") : len(date)-len("\r\n")])}
	}
	var own []byte
	if f.Explicit && w.status != http.StatusSwitchingProtocols {
		connection = w.persistence()
	}
	if connection != "" {
		own = append(append(append(own, "Connection: "...), connection...), "\r\n"...)
	} else {
		own = appendField(own, "Connection", w.set.connection)
	}
	b = w.appendUnplaced(b, framing, own)
	for name, value := range f.Names.Lines(w.fields, ownPlace) {
		switch {
		case name == "Connection":
			b, own = append(b, own...), nil
		case name == "Content-Length" && w.chunked: // it has the place of Transfer-Encoding
			if !f.Names.Has("Transfer-Encoding") {
				b, framing = append(b, framing...), nil
			}
		case name == "Transfer-Encoding" && !w.chunked && f.Names.Has("Content-Length"):
		case ownPlace(name):
			b, framing = append(b, framing...), nil
		default:
			b = appendField(b, name, []string{value})
		}
	}
	w.fields = nil
	return append(b, "\r\n"...)
}

// persistence returns the field Connection of a response that says in any case whether the connection is kept, "" for the
// handler's own.
func (w *writer) persistence() string {
	switch {
	case w.close:
		delete(w.fields, "Keep-Alive")
		return "close"
	case len(w.set.connection) > 0:
		return ""
	}
	return "keep-alive"
}

// appendUnplaced appends what has no place among the names.
func (w *writer) appendUnplaced(b, framing, connection []byte) []byte {
	names := w.format.Names
	if !names.Has("Content-Length") && !names.Has("Transfer-Encoding") {
		b = append(b, framing...)
	}
	if !names.Has("Connection") {
		b = append(b, connection...)
	}
	return b
}

// appendFraming appends the fields that tell where the body ends. It returns the field Connection that this makes of
// connection.
func (w *writer) appendFraming(b []byte, allowed bool, connection string) ([]byte, string) {
	if w.declared != -1 && allowed {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), w.declared, 10), "\r\n"...)
	}
	if allowed && !w.head && w.declared == -1 {
		return w.frame(b, connection)
	}
	return b, connection
}

func (w *writer) appendFormattedStatus(b []byte) []byte {
	f := w.format
	if f.Status == "" {
		return appendStatusLine(b, w.http11 || f.HTTP11, w.status)
	}
	version := "HTTP/1.0 "
	if w.http11 || f.HTTP11 {
		version = "HTTP/1.1 "
	}
	return append(appendValue(append(b, version...), f.Status), "\r\n"...)
}

var _ clientside.Formatter = (*writer)(nil)
