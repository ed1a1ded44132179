package filters

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/response"
)

// RecordsOptions configures Records.
type RecordsOptions struct {
	// Rewrite, if not nil, is called with each request and returns the function that rewrites the
	// records of its response; if it returns nil, the records are unchanged. That function is
	// called with one record after the other, without its terminator, and returns the record to
	// send instead, nil for none. It must not keep the record. An error from it cuts the response
	// off.
	Rewrite func(*http.Request) func(record []byte) ([]byte, error)
	// MaxRecord bounds the size of a record in bytes; 0 means 1 MiB. A longer record cuts the
	// response off.
	MaxRecord int
}

// Records checks the options and returns a filter that sends each record of a stream separately
// and at once, independently of the handler's writes and flushes: a line of newline-delimited JSON
// (application/x-ndjson, application/jsonl), an event of text/event-stream (WHATWG HTML, section
// 9.2). Empty lines and comments, which keep a connection alive, pass without a call of Rewrite's
// function. Responses of other types pass unchanged.
//
// The filter requests an uncompressed response. With a Rewrite, a stream that is compressed all the
// same becomes a 502, since it can't be read.
func Records(o RecordsOptions) (culvert.Filter, error) {
	if o.MaxRecord < 0 {
		return nil, errors.New("filters: RecordsOptions: a negative bound")
	}
	if o.MaxRecord == 0 {
		o.MaxRecord = 1 << 20
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.serve(next, w, r) })
	}, nil
}

func (o *RecordsOptions) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	var rewrite func([]byte) ([]byte, error)
	if o.Rewrite != nil {
		returned := false
		defer clientbody.LeavePanicked(w, r, &returned)
		rewrite = o.Rewrite(r)
		returned = true
	}
	out := header.CloneRequest(r.Context(), r)
	out.Header.Del("Accept-Encoding")
	s := &recordStream{rewrite: rewrite, max: o.MaxRecord}
	response.Serve(next, w, out, &response.Hooks{Status: s.status, Body: s.body, Trailer: s.trailer})
}

// recordStream is one response.
type recordStream struct {
	rewrite func([]byte) ([]byte, error) // nil: records are unchanged
	max     int
	flush   func() error
	cut     func(p []byte, scanned int) (end, length int) // nil: the response is not a stream of records
	refused bool

	w       io.Writer
	pending []byte
	scanned int // of pending
	err     error
}

func (s *recordStream) status(_ *http.Request, status int, h http.Header) int {
	s.cut = cutter(h.Get("Content-Type"))
	encoding := h.Get("Content-Encoding")
	switch {
	case s.cut == nil || status < 200 || status > 299:
		s.cut = nil
		return status
	case encoding == "" || encoding == "identity":
		header.ContentRewritten(h)
		return status
	case s.rewrite == nil:
		s.cut = nil
		return status
	}
	s.refused = true
	header.ContentRewritten(h)
	delete(h, "Content-Encoding")
	delete(h, "Trailer")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	return http.StatusBadGateway
}

func (s *recordStream) body(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
	switch {
	case s.refused:
		return &replacement{w, "the server's stream is compressed and can't be read\n"}
	case s.cut == nil:
		return nil
	}
	s.w, s.flush = w, w.(interface{ FlushError() error }).FlushError // of w, which bounds the time that the client may take
	return s
}

func (s *recordStream) trailer(h http.Header) {
	if s.refused {
		header.DeleteTrailers(h)
		return
	}
	header.DeleteDigestTrailers(h)
}

// replacement sends a text in place of a response.
type replacement struct {
	w    io.Writer
	text string
}

func (r *replacement) Write(p []byte) (int, error) { return len(p), nil }

// Discards implements response.Discards.
func (r *replacement) Discards() bool { return true }

func (r *replacement) Close() error {
	_, err := io.WriteString(r.w, r.text)
	return err
}

// cutter returns the function that finds the end of a record in a stream of the given type, nil for
// other types.
func cutter(contentType string) func(p []byte, scanned int) (end, length int) {
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines":
		return cutLine
	case "text/event-stream":
		return cutEvent
	}
	return nil
}

// cutLine returns the length of the first line of p, with and without its line break. end is -1 if
// the line is incomplete. p[:scanned] is known to have no line break.
func cutLine(p []byte, scanned int) (end, length int) {
	i := bytes.IndexByte(p[scanned:], '\n')
	if i < 0 {
		return -1, 0
	}
	end = scanned + i + 1
	return end, len(bytes.TrimSuffix(p[:end-1], []byte("\r")))
}

// cutEvent is cutLine for an event, which ends with an empty line. A line ends with \n, \r or both,
// so a \r at the end of p may be half of a line break.
func cutEvent(p []byte, scanned int) (end, length int) {
	line := 0 // the first byte of the last line
	for i := lastBreak(p, scanned); i < len(p); {
		n := lineBreak(p[i:])
		switch {
		case n == 0:
			i++
			continue
		case n < 0:
			return -1, 0
		case i == line || i > 0 && isBreak(p[i-1]):
			return i + n, len(bytes.TrimRight(p[:i], "\r\n"))
		}
		i += n
		line = i
	}
	return -1, 0
}

// lastBreak returns the index at which a scan restarts: before the line breaks at the end of
// p[:scanned].
func lastBreak(p []byte, scanned int) int {
	for scanned > 0 && isBreak(p[scanned-1]) {
		scanned--
	}
	return scanned
}

func isBreak(b byte) bool { return b == '\n' || b == '\r' }

// lineBreak returns the length of the line break that p begins with, 0 if there is none, -1 if that
// depends on the next byte.
func lineBreak(p []byte) int {
	switch {
	case p[0] == '\n':
		return 1
	case p[0] != '\r':
		return 0
	case len(p) == 1:
		return -1
	case p[1] == '\n':
		return 2
	}
	return 1
}

func (s *recordStream) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	s.pending = append(s.pending, p...)
	used := 0
	for {
		end, length := s.cut(s.pending[used:], s.scanned)
		if end < 0 {
			s.scanned = len(s.pending) - used
			break
		}
		s.scanned = 0
		if s.err = s.send(s.pending[used:used+end], length); s.err != nil {
			return 0, s.err
		}
		used += end
	}
	s.pending = append(s.pending[:0], s.pending[used:]...)
	if len(s.pending) > s.max {
		s.err = fmt.Errorf("filters: a record of more than %d bytes", s.max)
		return 0, s.err
	}
	return len(p), nil
}

// send sends a record, of which the first length bytes are its content.
func (s *recordStream) send(record []byte, length int) error {
	if length > s.max {
		return fmt.Errorf("filters: a record of more than %d bytes", s.max)
	}
	content := record[:length:length] // a function that appends to it must not write into the next record
	if s.rewrite != nil && !silent(content) {
		rewritten, err := s.rewrite(content)
		if err != nil {
			return err
		}
		if rewritten == nil {
			return nil
		}
		record = append(append([]byte(nil), rewritten...), record[length:]...)
	}
	if _, err := s.w.Write(record); err != nil {
		return err
	}
	return s.flush()
}

// silent reports whether a record has no content: it is empty, or an event of comments only.
func silent(p []byte) bool {
	for line := range bytes.Lines(p) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != ':' {
			return false
		}
	}
	return true
}

// Close sends a last record without a terminator.
func (s *recordStream) Close() error {
	if s.err == nil && len(s.pending) > 0 {
		s.err = s.send(s.pending, len(bytes.TrimRight(s.pending, "\r\n")))
	}
	return s.err
}
