package http1

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// untilClose is the length of a body that ends with its connection.
const untilClose = -1

// AnswerFraming is how an answer's body ends.
type AnswerFraming struct {
	Chunked bool
	Length  int64 // said by the head; -1 if it says none
	NoBody  bool  // there is none, whatever the head says
	Close   bool  // the connection ends with the answer
}

// Frame finds out how the answer to a request of a method ends, and takes the fields that
// say so out, as http.ReadResponse does.
func (h *Head) Frame(method string) (f AnswerFraming, err error) {
	_, coded := h.Fields["Transfer-Encoding"]
	if f.Chunked, err = h.chunked(); err != nil {
		return f, err
	}
	lengths := h.Fields["Content-Length"]
	for i, line := range lengths {
		lengths[i] = textproto.TrimString(line) // a folded one may end with a blank
	}
	if f.Length, err = ContentLength(lengths); err != nil {
		return f, err
	}
	if len(lengths) > 1 {
		h.Fields["Content-Length"] = lengths[:1]
	}
	f.NoBody = method == http.MethodHead || h.Status < 200 || h.Status == http.StatusNoContent || h.Status == http.StatusNotModified
	if f.Chunked && !f.NoBody {
		delete(h.Fields, "Content-Length")
		f.Length = untilClose
	}
	// A coding beside a length, or in HTTP/1.0, may have been a mistake: somewhere before us the response may have ended
	// elsewhere (RFC 9112 sections 6.1 and 6.3).
	doubtful := coded && (len(lengths) > 0 || h.Minor == 0)
	f.Close = doubtful || h.closes() || !f.NoBody && !f.Chunked && f.Length == untilClose
	return f, nil
}

// chunked looks at Transfer-Encoding, which HTTP/1.0 does not know.
func (h *Head) chunked() (bool, error) {
	lines, given := h.Fields["Transfer-Encoding"]
	if !given {
		return false, nil
	}
	delete(h.Fields, "Transfer-Encoding")
	if h.Minor == 0 {
		return false, nil
	}
	if len(lines) != 1 || !strings.EqualFold(lines[0], "chunked") {
		return false, fmt.Errorf("http1: unsupported transfer encoding %q", lines)
	}
	return true, nil
}

// ContentLength returns the length that the Content-Length fields of a message of any version of HTTP declare, -1 where there
// is none. Several that are equal count as one; a list in one field does not (RFC 9110 section 8.6).
func ContentLength(lines []string) (int64, error) {
	if len(lines) == 0 {
		return untilClose, nil
	}
	for _, line := range lines[1:] {
		if line != lines[0] {
			return 0, fmt.Errorf("http1: different lengths %q", lines)
		}
	}
	n, err := strconv.ParseUint(lines[0], 10, 63)
	if err != nil {
		return 0, fmt.Errorf("http1: bad Content-Length %q", lines[0])
	}
	return int64(n), nil
}

// closes says whether the target ends the connection after the answer.
func (h *Head) closes() bool {
	connection := h.Fields["Connection"]
	if h.Minor == 0 {
		return httpguts.HeaderValuesContainsToken(connection, "close") || !httpguts.HeaderValuesContainsToken(connection, "keep-alive")
	}
	return httpguts.HeaderValuesContainsToken(connection, "close")
}

// Trailers are the trailers that the head announces, without values; nil for none.
func (h *Head) Trailers() (http.Header, error) {
	lines, given := h.Fields["Trailer"]
	if !given {
		return nil, nil
	}
	delete(h.Fields, "Trailer")
	trailers := http.Header{}
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name == "" {
				continue
			}
			name = http.CanonicalHeaderKey(name)
			switch name {
			case "Transfer-Encoding", "Trailer", "Content-Length":
				return nil, fmt.Errorf("http1: bad trailer %q", name)
			}
			trailers[name] = nil
		}
	}
	if len(trailers) == 0 {
		return nil, nil
	}
	return trailers, nil
}
