package watchcodec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/head"
	"github.com/culvert-go/culvert/internal/response"
)

// RecordsOptions configures a filter of streams of records.
type RecordsOptions struct {
	// Rewrite is asked for each request what becomes of the records of its answer; nil
	// means that they are the same, and so does a nil function from it. The function is
	// given one record after the other, without what ends it, and returns what is sent in
	// its place, nil for nothing. It must not keep the record. An error cuts the answer.
	Rewrite func(*http.Request) func(record []byte) ([]byte, error)
	// MaxRecord bounds a record, in bytes; 0 means 1 MiB. A longer one cuts the answer.
	MaxRecord int
}

// NewRecords checks the options and returns a filter that sends each record of a stream by
// itself and at once, however the handler has written and flushed them: a line of
// newline-delimited JSON (application/x-ndjson, application/jsonl), an event of
// text/event-stream (WHATWG HTML, section 9.2). Empty lines and comments, which keep a
// connection alive, pass without being asked for. Answers of other types pass as they are.
//
// The handler is asked for an uncompressed answer. A stream that is compressed all the
// same becomes a 502 where there is a Rewrite: it can't be read.
func NewRecords(o RecordsOptions) (func(http.Handler) http.Handler, error) {
	if o.MaxRecord < 0 {
		return nil, errors.New("watchcodec: RecordsOptions: a negative bound")
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
	out := head.CloneRequest(r.Context(), r)
	out.Header.Del("Accept-Encoding")
	s := &recordStream{rewrite: rewrite, max: o.MaxRecord}
	response.Serve(next, w, out, &response.Hooks{Status: s.status, Body: s.body})
}

// recordStream is one answer.
type recordStream struct {
	rewrite func([]byte) ([]byte, error) // nil: records stay as they are
	max     int
	flush   func() error
	cut     func(p []byte, scanned int) (end, length int) // nil: no stream of records
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
		for _, name := range describing {
			h.Del(name)
		}
		return status
	case s.rewrite == nil:
		s.cut = nil
		return status
	}
	s.refused = true
	for _, name := range append(describing, "Content-Encoding", "Trailer") {
		h.Del(name)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	return http.StatusBadGateway
}

func (s *recordStream) body(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
	switch {
	case s.refused:
		return &refused{w, []byte("the server's stream is compressed and can't be read\n")}
	case s.cut == nil:
		return nil
	}
	s.w, s.flush = w, w.(interface{ FlushError() error }).FlushError // w's, which bounds the client's time
	return s
}

// cutter knows where the records of a stream end.
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

// cutLine returns where the first line of p ends, with and without its line break; -1 if it
// has not come as a whole. p[:scanned] has no end.
func cutLine(p []byte, scanned int) (end, length int) {
	i := bytes.IndexByte(p[scanned:], '\n')
	if i < 0 {
		return -1, 0
	}
	end = scanned + i + 1
	return end, len(bytes.TrimSuffix(p[:end-1], []byte("\r")))
}

// cutEvent is cutLine for an event, which ends with an empty line. A line ends with \n, \r
// or both, so a \r at the end of what has come may be half of one.
func cutEvent(p []byte, scanned int) (end, length int) {
	line := 0 // where the last line began
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

// lastBreak is where to begin again: at the line breaks before what was scanned.
func lastBreak(p []byte, scanned int) int {
	for scanned > 0 && isBreak(p[scanned-1]) {
		scanned--
	}
	return scanned
}

func isBreak(b byte) bool { return b == '\n' || b == '\r' }

// lineBreak is the length of the line break that p begins with, 0 if it is none, -1 if
// that can't be told yet.
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
		s.err = fmt.Errorf("watchcodec: a record of more than %d bytes", s.max)
		return 0, s.err
	}
	return len(p), nil
}

// send sends a record, of which the first length bytes are what is asked about.
func (s *recordStream) send(record []byte, length int) error {
	if length > s.max {
		return fmt.Errorf("watchcodec: a record of more than %d bytes", s.max)
	}
	content := record[:length]
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

// silent says whether a record tells nothing: it is empty, or it is an event of comments.
func silent(p []byte) bool {
	for line := range bytes.Lines(p) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != ':' {
			return false
		}
	}
	return true
}

// Close sends a last record that has no end.
func (s *recordStream) Close() error {
	if s.err == nil && len(s.pending) > 0 {
		s.err = s.send(s.pending, len(bytes.TrimRight(s.pending, "\r\n")))
	}
	return s.err
}
