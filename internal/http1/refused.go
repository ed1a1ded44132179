package http1

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Refused is the error of a request that a server does not serve. Those of one Status and Reason are equal for errors.Is.
type Refused struct {
	Status int    // of the response
	Reason string // holds nothing of the request, so that it may be sent
	Near   string // the malformed field up to its mistake, for a log; "" if there is none
}

// Error returns the reason.
func (e *Refused) Error() string { return "http1: " + e.Reason }

// Is reports whether target is a Refused for the same reason.
func (e *Refused) Is(target error) bool {
	other, ok := target.(*Refused)
	return ok && e.Status == other.Status && e.Reason == other.Reason
}

// Why requests are refused.
var (
	ErrRequestLine    = &Refused{Status: http.StatusBadRequest, Reason: "malformed request line"}
	ErrTarget         = &Refused{Status: http.StatusBadRequest, Reason: "malformed request target"}
	ErrVersion        = &Refused{Status: http.StatusBadRequest, Reason: "malformed HTTP version"}
	ErrOtherVersion   = &Refused{Status: http.StatusHTTPVersionNotSupported, Reason: "unsupported protocol version"}
	ErrLineTooLong    = &Refused{Status: http.StatusRequestURITooLong, Reason: "the request line is too long"}
	ErrFieldsTooLarge = &Refused{Status: http.StatusRequestHeaderFieldsTooLarge, Reason: "the header is too large"}
	ErrField          = &Refused{Status: http.StatusBadRequest, Reason: "malformed header field"}
	ErrManyHosts      = &Refused{Status: http.StatusBadRequest, Reason: "too many Host headers"}
	ErrNoHost         = &Refused{Status: http.StatusBadRequest, Reason: "missing required Host header"}
	ErrHost           = &Refused{Status: http.StatusBadRequest, Reason: "malformed Host header"}
	ErrOldCoding      = &Refused{Status: http.StatusBadRequest, Reason: "Transfer-Encoding in HTTP/1.0"}
	ErrCoding         = &Refused{Status: http.StatusNotImplemented, Reason: "unsupported transfer encoding"}
	ErrBothLengths    = &Refused{Status: http.StatusBadRequest, Reason: "both Transfer-Encoding and Content-Length"}
	ErrLength         = &Refused{Status: http.StatusBadRequest, Reason: "bad Content-Length"}
	ErrTrailer        = &Refused{Status: http.StatusBadRequest, Reason: "bad Trailer"}
	ErrExpectation    = &Refused{Status: http.StatusExpectationFailed, Reason: "unknown expectation"}
	ErrCleartext      = &Refused{Status: http.StatusBadRequest, Reason: "an HTTP request on a port of TLS"}
)

// mostNear bounds Refused.Near.
const mostNear = 80

// fault returns the first malformed one of the field lines of rest, up to and including its first byte that is malformed,
// which is written in hexadecimal.
func fault(rest string) string {
	for rest != "" {
		var line string
		line, rest = cutLine(rest)
		if line == "" {
			return ""
		}
		if at := mistake(line); at < 0 {
			continue
		} else if at < len(line) {
			return fmt.Sprintf("%s\\x%02x", line[:min(at, mostNear)], line[at])
		}
		return line[:min(len(line), mostNear)]
	}
	return ""
}

// mistake returns where a field line is malformed, its length if it has no colon, -1 if it is well-formed.
func mistake(line string) int {
	colon := strings.IndexByte(line, ':')
	for i := range len(line) {
		switch c := line[i]; {
		case i == colon && i > 0:
		case i <= colon || colon < 0:
			if !httpguts.IsTokenRune(rune(c)) {
				return i
			}
		case c < ' ' && c != '\t' || c == 0x7f:
			return i
		}
	}
	if colon < 0 {
		return len(line)
	}
	return -1
}
