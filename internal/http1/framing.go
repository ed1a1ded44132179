package http1

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// framing is how a response's body ends.
type framing struct {
	chunked bool
	length  int64 // declared by the header; -1 if it declares none
	noBody  bool  // there is none, though the header may declare one
	close   bool  // the connection ends with the response
}

// frame returns how the response to a request of a method ends, and removes the fields that
// declare it, as http.ReadResponse does.
func (h *header) frame(method string) (f framing, err error) {
	_, coded := h.fields["Transfer-Encoding"]
	if f.chunked, err = h.isChunked(); err != nil {
		return f, err
	}
	lengths := h.fields["Content-Length"]
	for i, line := range lengths {
		lengths[i] = textproto.TrimString(line) // a folded one may end with a blank
	}
	if f.length, err = ContentLength(lengths); err != nil {
		return f, err
	}
	if len(lengths) > 1 {
		h.fields["Content-Length"] = lengths[:1]
	}
	f.noBody = method == http.MethodHead || h.status < 200 || h.status == http.StatusNoContent || h.status == http.StatusNotModified
	if f.chunked && !f.noBody {
		delete(h.fields, "Content-Length")
		f.length = untilClose
	}
	// A coding beside a length, or in HTTP/1.0, may have been a mistake: somewhere before us the response may have ended
	// elsewhere (RFC 9112 sections 6.1 and 6.3).
	doubtful := coded && (len(lengths) > 0 || h.minor == 0)
	f.close = doubtful || h.closes() || !f.noBody && !f.chunked && f.length == untilClose
	return f, nil
}

// isChunked removes Transfer-Encoding, which HTTP/1.0 does not know, and reports whether the body is chunked.
func (h *header) isChunked() (bool, error) {
	lines, given := h.fields["Transfer-Encoding"]
	if !given {
		return false, nil
	}
	delete(h.fields, "Transfer-Encoding")
	if h.minor == 0 {
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

// closes reports whether the target ends the connection after the response.
func (h *header) closes() bool {
	connection := h.fields["Connection"]
	if h.minor == 0 {
		return httpguts.HeaderValuesContainsToken(connection, "close") || !httpguts.HeaderValuesContainsToken(connection, "keep-alive")
	}
	return httpguts.HeaderValuesContainsToken(connection, "close")
}

// announced removes the field Trailer, and returns the trailers that it announces, without values; nil for none. If names are kept,
// theirs follow those of the fields.
func (h *header) announced() (http.Header, error) {
	lines, given := h.fields["Trailer"]
	if !given {
		return nil, nil
	}
	delete(h.fields, "Trailer")
	trailers := http.Header{}
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name == "" {
				continue
			}
			trailers[http.CanonicalHeaderKey(name)] = nil
			if h.named {
				h.names = append(h.names, name)
			}
		}
	}
	if len(trailers) == 0 {
		return nil, nil
	}
	if name := framingTrailer(trailers); name != "" {
		return nil, fmt.Errorf("http1: bad trailer %q", name)
	}
	return trailers, nil
}

// framingTrailer returns a name among the trailers that would change where the message ends (RFC 9110 section 6.5.1), ""
// for none.
func framingTrailer(trailers http.Header) string {
	for _, name := range [...]string{"Transfer-Encoding", "Trailer", "Content-Length"} {
		if _, given := trailers[name]; given {
			return name
		}
	}
	return ""
}
