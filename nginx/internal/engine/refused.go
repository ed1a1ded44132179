package engine

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/culvert-go/culvert/internal/http1"
	front "github.com/culvert-go/culvert/server" // the engine has servers of its own
)

// RefusedRequest returns a request for a Listener's Handler, which responds to it with the error page of the refusal, and
// logs it. If the header was not received as a whole, it ends the connection, and logs 408 (client_header_timeout) or 400.
func RefusedRequest(r *front.Refusal) *http.Request {
	return r.Request.WithContext(context.WithValue(r.Request.Context(), refusalKey{}, r))
}

type refusalKey struct{}

// refusalOf returns the refusal that a context carries, nil if there is none.
func refusalOf(ctx context.Context) *front.Refusal {
	r, _ := ctx.Value(refusalKey{}).(*front.Refusal)
	return r
}

// refusal is why a request is refused.
type refusal struct {
	text   string // nginx's, for the error log; "" if nginx has none
	inLine bool   // by the request line alone: nginx has not read the header
}

// refuse has x refused with a status and nginx's text, unless it is already.
func (x *exchange) refuse(status int, text string) {
	if x.refused == 0 {
		x.refused, x.refusal.text = status, text
	}
}

// refuseLine has x refused by its request line alone, which nginx reads before the header.
func (x *exchange) refuseLine(status int, text string) {
	if !x.unanswered && (x.refused == 0 || !x.refusal.inLine) {
		x.refused, x.refusal = status, refusal{text, true}
	}
}

// enterRefused prepares x for a request that the server has refused.
func (x *exchange) enterRefused(r *front.Refusal) {
	x.Line, _, _ = strings.Cut(r.Line, "\r")
	x.refusal.inLine = x.HTTP.Method == "" || errors.Is(r.Err, http1.ErrTarget)
	switch {
	case errors.Is(r.Err, os.ErrDeadlineExceeded):
		x.unanswered = true
		x.refuse(http.StatusRequestTimeout, "client timed out (110: Connection timed out)")
	case r.Status == 0:
		x.unanswered = true
		x.refuse(http.StatusBadRequest, "client prematurely closed connection")
	case errors.Is(r.Err, http1.ErrCleartext): // nginx looks for other faults first
		x.cleartext = true
	case x.refusal.inLine:
		x.refuse(lineFault(r.Status, x.Line))
	case !x.refuseDuplicates():
		x.refuse(headerFault(r.Status, r.Err))
	}
}

// lineFault returns the status and the text by which nginx refuses a request line that the server has refused.
func lineFault(status int, line string) (int, string) {
	method, rest, _ := strings.Cut(line, " ")
	target, version, _ := strings.Cut(rest, " ")
	_, _, validTarget := targetHost(method, target)
	switch {
	case !validMethod(method):
		return http.StatusBadRequest, invalidMethod
	case status == http.StatusRequestURITooLong:
		return status, tooLongURI
	case version == "" && method != http.MethodGet && validTarget:
		return http.StatusBadRequest, "client sent invalid method in HTTP/0.9 request"
	case status == http.StatusHTTPVersionNotSupported && validTarget:
		return status, "client sent invalid version"
	}
	return http.StatusBadRequest, invalidRequest
}

const (
	invalidMethod  = "client sent invalid method"
	invalidRequest = "client sent invalid request"
	tooLongURI     = "client sent too long URI"
	tooLargeHeader = 494 // for error_page; it is sent as 400
)

// headerFaults are nginx's texts for what the server refuses in a header.
var headerFaults = []struct {
	err  error
	text string
}{
	{http1.ErrManyHosts, "client sent duplicate host header"},
	{http1.ErrNoHost, "client sent HTTP/1.1 request without \"Host\" header"},
	{http1.ErrHost, invalidHost},
	{http1.ErrOldCoding, "client sent HTTP/1.0 request with \"Transfer-Encoding\" header"},
	{http1.ErrCoding, "client sent unknown \"Transfer-Encoding\""},
	{http1.ErrBothLengths, "client sent \"Content-Length\" and \"Transfer-Encoding\" headers at the same time"},
	{http1.ErrLength, "client sent invalid \"Content-Length\" header"},
	{http1.ErrTrailer, "client sent invalid \"Trailer\" header"},
	{http1.ErrExpectation, "client sent unknown \"Expect\" header"},
}

// headerFault returns the status and the text by which nginx refuses a header that the server has refused.
func headerFault(status int, err error) (int, string) {
	if status == http.StatusRequestHeaderFieldsTooLarge {
		return tooLargeHeader, "client sent too large request"
	}
	var refused *http1.Refused
	if errors.Is(err, http1.ErrField) && errors.As(err, &refused) {
		return status, "client sent invalid header line: \"" + refused.Near + "...\""
	}
	for _, f := range headerFaults {
		if errors.Is(err, f.err) {
			return status, f.text
		}
	}
	return status, ""
}

// logRefusal logs why x is refused.
func (x *exchange) logRefusal() {
	if x.refusal.text == "" {
		return
	}
	what := "headers"
	if x.refusal.inLine {
		what = "line"
	}
	x.logAt(levelInfo, x.refusal.text+" while reading client request "+what, "")
}
