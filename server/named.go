package server

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/fieldnames"
)

// FormatHeader implements clientside.Formatter.
func (w *writer) FormatHeader(f fieldnames.Format) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.left && !w.frozen && f.Names != nil {
		w.format = f
	}
}

// HeaderFormat implements clientside.Formatter.
func (w *writer) HeaderFormat() fieldnames.Format {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.format
}

// formatted reports whether the header is written by w.format.
func (w *writer) formatted() bool { return w.format.Names != nil }

// mark is a part of a frozen header's fields that commit decides about: the lines of a field, or the place of one that the
// server writes itself.
type mark struct {
	field      string
	start, end int
}

// ownPlaces are the fields that the server writes itself. The first two have one place, if there are no others.
var ownPlaces = []string{"Content-Length", "Transfer-Encoding", "Connection"}

// freezeNamed is freeze for a header that is written in the order of w.format.
func (w *writer) freezeNamed() {
	var room [8]string
	placed := append(room[:0], ownPlaces...)
	for name, values := range w.header {
		if !w.settle(name, values) && !slices.Contains(ownPlaces, name) {
			placed = append(placed, name) // nothing stands there
		}
	}
	if !w.set.contentType && !w.set.contentEncoding {
		placed = append(placed, "Content-Type")
	}
	w.marks = w.marksRoom[:0]
	w.out.begin()
	w.out.buf = append(w.appendMarked(w.out.buf, placed), "\r\n"...)
	w.out.bodyAt = len(w.out.buf)
}

// appendMarked appends the handler's fields and Date, and marks the places of those that are written later.
func (w *writer) appendMarked(b []byte, placed []string) []byte {
	dated, own := w.set.date, ""
	if !dated {
		own = "Date"
	}
	for name, value := range w.format.Names.LinesAround(own, w.header, placed...) {
		start := len(b)
		switch {
		case name == own:
			if !dated {
				b, dated = appendDate(b), true
			}
		case slices.Contains(placed, name):
			if !w.marked(name) {
				w.marks = append(w.marks, mark{name, start, start})
			}
		default:
			if b = appendLine(b, name, value); strings.EqualFold(name, "Keep-Alive") {
				w.marks = append(w.marks, mark{"Keep-Alive", start, len(b)})
			}
		}
	}
	return b
}

func (w *writer) marked(field string) bool {
	return slices.ContainsFunc(w.marks, func(m mark) bool { return m.field == field })
}

// appendNamed appends the whole header as w.format has it.
func (w *writer) appendNamed(b, body []byte, allowed bool, connection string) []byte {
	var room [frontRoom]byte
	framing, connection := w.appendFraming(room[:0], allowed, connection)
	persists := len(framing)
	all := w.appendPersistence(framing, connection)
	framing, persistence := all[:persists], all[persists:]
	b = w.appendFormattedStatus(b)
	if !w.marked("Content-Length") && !w.marked("Transfer-Encoding") {
		b = append(b, framing...)
	}
	if !w.marked("Connection") {
		b = append(b, persistence...)
	}
	if !w.marked("Content-Type") {
		b = w.appendSniffed(b, body, allowed)
	}
	from := frontRoom
	for _, m := range w.marks {
		b = append(b, w.out.buf[from:m.start]...)
		from = m.end
		switch m.field {
		case w.framingPlace():
			b = append(b, framing...)
		case "Connection":
			b = append(b, persistence...)
		case "Content-Type":
			b = w.appendSniffed(b, body, allowed)
		case "Keep-Alive":
			if !w.close || !w.saysPersistence() {
				b = append(b, w.out.buf[m.start:m.end]...)
			}
		}
	}
	return append(b, w.out.buf[from:w.out.bodyAt]...)
}

// framingPlace returns the field in the place of which the response's framing stands.
func (w *writer) framingPlace() string {
	if w.marked("Transfer-Encoding") && (w.chunked || !w.marked("Content-Length")) {
		return "Transfer-Encoding"
	}
	return "Content-Length"
}

// appendPersistence appends the field Connection: one with an option of the server's, or else the handler's.
func (w *writer) appendPersistence(b []byte, option string) []byte {
	if w.saysPersistence() {
		option = w.persistence()
	}
	if option != "" {
		return appendLine(b, "Connection", option)
	}
	return appendField(b, "Connection", w.set.connection)
}

// saysPersistence reports whether Connection is to say whether the connection is kept.
func (w *writer) saysPersistence() bool {
	return w.format.Explicit && w.status != http.StatusSwitchingProtocols
}

// persistence returns the field Connection of a response that says in any case whether the connection is kept, "" for the
// handler's own.
func (w *writer) persistence() string {
	switch {
	case w.close:
		return "close"
	case len(w.set.connection) > 0:
		return ""
	}
	return "keep-alive"
}

// appendFraming appends the fields that declare where the body ends. It returns the field Connection that this makes of
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

// appendFormattedStatus appends the status line as w.format has it. Behind the header of a target's response a filter may have sent
// another status, or another handler may have responded: that is none of the format's.
func (w *writer) appendFormattedStatus(b []byte) []byte {
	http11 := w.http11 || w.format.HTTP11
	code, _, _ := strings.Cut(w.format.Status, " ")
	if n, err := strconv.Atoi(code); err != nil || n != w.status {
		return appendStatusLine(b, http11, w.status)
	}
	version := "HTTP/1.0 "
	if http11 {
		version = "HTTP/1.1 "
	}
	return append(appendValue(append(b, version...), w.format.Status), "\r\n"...)
}

var _ clientside.Formatter = (*writer)(nil)
