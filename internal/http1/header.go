package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/fieldnames"
)

// ErrHeaderTooLarge is the error of a message whose header sections are longer than they may be.
var ErrHeaderTooLarge = errors.New("http1: the header is too large")

// header is the header section of a message.
type header struct {
	status     int // of a response
	minor      int // of HTTP/1.x
	fields     http.Header
	strict     bool // it is a request's: what a recipient may tolerate in a field line is refused
	named      bool // the fields' names are kept
	names      fieldnames.List
	statusText string // the code, a blank and the reason, if names are kept

	request *Incoming // that the section is of; nil for a response
	lines   []byte    // of the section, put together where it does not stand in the buffer as a whole
	memory  []string  // for values and names, if they fit: given by the caller for one section
	values  []string
}

// headerEnd returns the length of the header section that b begins with, its empty line included; 0 if it does
// not end in b.
func headerEnd(b []byte) int {
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return 0
		}
		i += n + 1
		switch {
		case i < len(b) && b[i] == '\n':
			return i + 1
		case i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n':
			return i + 2
		}
	}
}

// Waiter is called before each read of a header section that may take its time.
type Waiter interface{ AwaitRest() }

// read reads the header section of a response from r into fields, and not a byte more. room is how long it may be, and
// what of that remains afterwards. w is called before a read for what was not received yet.
func (h *header) read(r *bufio.Reader, fields http.Header, room *int, w Waiter) error {
	text, err := h.collect(r, *room, w)
	if err != nil {
		return err
	}
	*room -= len(text)
	h.fields = fields
	return h.parse(text)
}

// collect returns the bytes of a header section. They are good until the next read. With an error they are those that
// were received.
func (h *header) collect(r *bufio.Reader, room int, w Waiter) ([]byte, error) {
	h.lines = h.lines[:0]
	for {
		b, _ := r.Peek(r.Buffered())
		if len(h.lines) == 0 {
			if n := headerEnd(b); n > 0 {
				if n > room {
					return b[:n], ErrHeaderTooLarge
				}
				_, _ = r.Discard(n)
				return b[:n], nil
			}
		}
		done, err := h.gather(r, b, room)
		if !done && err == nil {
			err = h.request.checkBeginning(h.lines)
		}
		if done || err != nil {
			return h.lines, err
		}
		w.AwaitRest()
		if _, err := r.Peek(1); err != nil {
			return h.lines, unexpected(err)
		}
	}
}

// collectTrailers is collect for fields without a line before them. It may be called again behind an error of r. h.lines begins
// with the end of a line: behind that the empty line that ends the fields is found as a header's is.
func (h *header) collectTrailers(r *bufio.Reader, room int) ([]byte, error) {
	for {
		b, err := r.Peek(max(r.Buffered(), 1))
		if err != nil {
			return nil, err
		}
		if done, err := h.gather(r, b, room); done || err != nil {
			return h.lines[1:], err
		}
	}
}

// gather moves what was received into h.lines, up to the section's end.
func (h *header) gather(r *bufio.Reader, b []byte, room int) (done bool, err error) {
	before := len(h.lines)
	h.lines = append(h.lines, b...)
	// The end may lie across two reads.
	from := max(0, before-3)
	if n := headerEnd(h.lines[from:]); n > 0 {
		h.lines = h.lines[:from+n]
		_, _ = r.Discard(from + n - before)
		done = true
	} else {
		_, _ = r.Discard(len(b))
	}
	if len(h.lines) > room {
		return false, ErrHeaderTooLarge
	}
	return done, nil
}

// parse reads the status line and the fields.
func (h *header) parse(text []byte) error {
	all := string(text) // one piece of memory for all names and values
	line, rest := cutLine(all)
	if err := h.statusLine(line); err != nil {
		return err
	}
	return h.parseFields(rest)
}

// parseFields reads fields up to the empty line. The first one has none before it to be a part of.
func (h *header) parseFields(rest string) error {
	if rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
		return malformed("initial header line", rest)
	}
	h.makeRoom(strings.Count(rest, "\n"))
	var line string
	for {
		if line, rest = h.cutField(rest); line != "" {
			if err := h.field(line); err != nil {
				return err
			}
		}
		if h.strict && rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
			return malformed("folded header line", rest)
		}
		if line == "" {
			return nil
		}
	}
}

// makeRoom makes room for the values, and for the names if they are kept, of so many fields.
func (h *header) makeRoom(fields int) {
	need := fields
	if h.named {
		need += fields
	}
	room := h.memory
	if h.memory = nil; need > cap(room) { // else it is the fields' from now on
		room = make([]string, need)
	}
	h.values, h.names = room[:0:fields], nil
	if h.named {
		h.names = room[fields:fields:need]
	}
}

func malformed(what, text string) error {
	return fmt.Errorf("http1: malformed %s %q", what, text[:min(len(text), 80)])
}

// cutLine cuts a line without its end.
func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

// trimBlanks is strings.Trim(s, " \t"), which is slow for two bytes.
func trimBlanks(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// cutField is cutLine for a field, of which the lines that begin with a blank are a part
// (obs-fold), but for a request. The section's last line is empty.
func (h *header) cutField(s string) (line, rest string) {
	line, rest = cutLine(s)
	if h.strict || rest == "" || rest[0] != ' ' && rest[0] != '\t' {
		return trimBlanks(line), rest
	}
	var folded strings.Builder // since there may be thousands of lines
	folded.WriteString(trimBlanks(line))
	for rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
		line, rest, _ = strings.Cut(rest, "\n")
		folded.WriteByte(' ')
		folded.WriteString(trimBlanks(strings.TrimSuffix(line, "\r")))
	}
	return folded.String(), rest
}

func (h *header) statusLine(line string) error {
	version, status, ok := strings.Cut(line, " ")
	if !ok {
		return malformed("status line", line)
	}
	code, _, _ := strings.Cut(strings.TrimLeft(status, " "), " ")
	n, err := strconv.Atoi(code)
	if len(code) != 3 || err != nil || n < 0 {
		return malformed("status code", line)
	}
	if len(version) != len("HTTP/1.1") || !strings.HasPrefix(version, "HTTP/1.") || version[7] < '0' || version[7] > '9' {
		return malformed("HTTP version", line)
	}
	h.status, h.minor = n, int(version[7]-'0')
	if h.named {
		if h.statusText = strings.TrimLeft(status, " "); h.statusText == code {
			h.statusText += " " // before no reason
		}
	}
	return nil
}

func (h *header) field(line string) error {
	colon := strings.IndexByte(line, ':')
	if colon < 0 {
		return malformed("header line", line)
	}
	name, value := line[:colon], trimBlanks(line[colon+1:])
	if !h.strict {
		// A proxy takes blanks before the colon of a response's field away; a request with them is
		// refused (RFC 9112 section 5.1).
		name = strings.TrimRight(name, " \t")
	}
	if !httpguts.ValidHeaderFieldName(name) {
		return malformed("header line", line)
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return malformed("header value", line)
		}
	}
	if h.named {
		h.names = append(h.names, name)
	}
	name = textproto.CanonicalMIMEHeaderKey(name)
	if have := h.fields[name]; have != nil {
		h.fields[name] = append(have, value)
		return nil
	}
	h.values = append(h.values, value)
	n := len(h.values)
	h.fields[name] = h.values[n-1 : n : n]
	return nil
}
