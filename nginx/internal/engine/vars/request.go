// Package vars holds the state of one request and nginx's variables, which are derived from it. A
// text with variables is compiled once, at load, to a Value.
package vars

import (
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
)

// Request is the engine's state of one request, or of one session of stream, which has only Start, TLS, ClientVerified,
// ClientError, Conn, Owner and what the configuration sets. It is used only by the request's own goroutine.
type Request struct {
	// HTTP is the request as the client sent it, sanitised; nil for a session.
	HTTP *http.Request
	// Connection are the lines of that field, which HTTP lacks or which name only its upgrade there.
	Connection []string
	// Line is the request line as the client sent it.
	Line string
	// HeaderBytes is the length of the request's header section; 0 if it is not known, over HTTP/2 for instance.
	HeaderBytes int
	// Pipelined reports whether the header was received together with the request before.
	Pipelined bool
	// RequestURI is the path and the query as the client sent them.
	RequestURI string
	// URI is the decoded and normalised path. An internal redirect changes it.
	URI string
	// Malformed reports whether the path that the client sent is, so that URI is "".
	Malformed bool
	// Args is the query, without the question mark, as it was sent.
	Args string
	// Internal reports whether URI comes from an internal redirect.
	Internal bool
	// Start is when the request's header had been read.
	Start time.Time
	// Host is $host: the server's name as the client wrote it, in lower case
	// and without the port, or else the first server_name.
	Host string
	// ServerName is the first server_name of the server that was chosen.
	ServerName string
	// HTTPS reports whether the client's connection is encrypted.
	HTTPS bool
	// ClientVerified reports whether the client's certificate has been verified, and ClientError is what is wrong with it.
	ClientVerified bool
	ClientError    error
	// TLS is the state of the connection of a session of stream, nil for cleartext. For a request it is nil: HTTP has it.
	TLS *tls.ConnectionState
	// Conn is the client's connection.
	Conn *Conn

	// Owner is what the getters need that were given to NewScope.
	Owner any

	// Status is the response's status, 0 as long as there is none.
	Status int
	// Header is the response's header.
	Header http.Header
	// BodyBytes counts the content that was sent.
	BodyBytes int64
	// Body is the request's body if it was read as a whole before an upstream was chosen; nil if it was not.
	Body Body
	// Complete reports whether the whole response has been sent.
	Complete bool
	// Upstream is the record of the exchange with the upstream.
	Upstream *culvert.Result
	// UpstreamHeader is the header of its response as received.
	UpstreamHeader http.Header

	captures []string // $1 and so on, of the last regular expression that matched
	passed   []int    // the number of attempts before each internal redirect
	own      values
	shared   *values // those of the request that this is a part of; nil: own
}

// Body is the body of a request.
type Body interface {
	// Text returns the content if all of it is in memory, and else "".
	Text() string
	// File returns the name of the file that the content is in, which may not be there any more; "" if it is in none.
	File() string
	// Len returns the length of the content.
	Len() int64
}

// values are what is evaluated once for a request, or set by it.
type values struct {
	set   map[string]string // by the set directive
	named map[string]string // named captures
	maps  []evaluated
	id    string // $request_id, once it was used

	failure error // of Fail, until it is taken
}

func (r *Request) values() *values {
	if r.shared != nil {
		return r.shared
	}
	return &r.own
}

// Branch returns a copy for a request that continues beside r: what it sets does not affect r, and
// it has a response of its own.
func (r *Request) Branch() Request {
	b := r.Part()
	b.Body = nil // which ends with r
	v := r.values()
	b.own, b.shared = values{set: maps.Clone(v.set), named: maps.Clone(v.named), maps: slices.Clone(v.maps), id: v.id}, nil
	return b
}

// Part returns a copy for a part of r that ends before r continues. It has a response and numbered
// captures of its own, and shares all other values with r, as in nginx. r must not be moved.
func (r *Request) Part() Request {
	b := *r
	b.own, b.shared = values{}, r.values()
	b.Status, b.BodyBytes, b.Header, b.Upstream, b.UpstreamHeader = 0, 0, nil, nil, nil
	b.passed = nil
	b.Redirected()
	return b
}

// Redirected records an internal redirect, which the variables of attempts show.
func (r *Request) Redirected() {
	if r.Upstream != nil && len(r.Upstream.Attempts) > 0 {
		r.passed = append(r.passed, len(r.Upstream.Attempts))
	}
}

// SetVariable sets a variable of the configuration.
func (r *Request) SetVariable(name, value string) {
	v := r.values()
	if v.set == nil {
		v.set = map[string]string{}
	}
	v.set[name] = value
}

// Fail records that a variable or a condition could not be evaluated, so that r must not be served as if it could. The first
// error is kept.
func (r *Request) Fail(err error) {
	if v := r.values(); v.failure == nil {
		v.failure = err
	}
}

// Failed reports whether there is an error of Fail, also for a request that r is a part of.
func (r *Request) Failed() bool { return r.values().failure != nil }

// TakeFailure returns the error of Fail, nil if there is none, and forgets it.
func (r *Request) TakeFailure() error {
	v := r.values()
	err := v.failure
	v.failure = nil
	return err
}

// Variable returns the value that SetVariable has set, "" if there is none.
func (r *Request) Variable(name string) string { return r.values().set[name] }

// Capture stores what a regular expression captured: groups[0] is the whole match. names are the
// names of the groups, as pcre.Regexp has them.
func (r *Request) Capture(groups, names []string) {
	r.captures = groups
	v := r.values()
	for i, name := range names {
		if name != "" && i < len(groups) {
			if v.named == nil {
				v.named = map[string]string{}
			}
			v.named[name] = groups[i]
		}
	}
}

// RemoteAddr returns the client's address without the port.
func (r *Request) RemoteAddr() string {
	host, _ := SplitAddr(r.HTTP.RemoteAddr)
	return host
}

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// SplitAddr splits the port off an address; that of a unix socket has none.
func SplitAddr(text string) (host, port string) {
	if strings.HasPrefix(text, unixPrefix) {
		return text, ""
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return text, ""
	}
	return host, port
}

// ServerAddr returns the address that the client connected to, without its port.
func (r *Request) ServerAddr() string {
	host, _ := r.localAddr()
	return host
}

// localAddr returns the address that the client connected to.
func (r *Request) localAddr() (host, port string) {
	addr, ok := r.HTTP.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return "", ""
	}
	if addr.Network() == "unix" {
		return unixPrefix + addr.String(), ""
	}
	return SplitAddr(addr.String())
}

// HostPort returns $host, with the port that the client has named behind it.
func (r *Request) HostPort() string {
	port := requestPort(r)
	return r.Host + prefixed(":", port) + port
}

// ServerPort returns the port that the client connected to.
func (r *Request) ServerPort() string {
	_, port := r.localAddr()
	return port
}
