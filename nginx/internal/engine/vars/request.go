// Package vars holds the state of one request and nginx's variables, which are derived from it. A
// text with variables is compiled once, at load, to a Value.
package vars

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
)

// Request is the engine's state of one request. It is used only by the request's own goroutine.
type Request struct {
	// HTTP is the request as the client sent it, sanitised.
	HTTP *http.Request
	// Line is the request line as the client sent it.
	Line string
	// PeerAddr is the address and port of the connection's other end if HTTP.RemoteAddr is what a
	// proxy has reported; else it is "".
	PeerAddr string
	// RequestURI is the path and the query as the client sent them.
	RequestURI string
	// URI is the decoded and normalised path. An internal redirect changes it.
	URI string
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
	// Conn is the client's connection.
	Conn *Conn

	// Location is the current one; nil if there is none.
	Location Location
	// ProxyHost and ProxyPort are those of the upstream that the request is sent to.
	ProxyHost, ProxyPort string

	// LimitReqStatus and LimitConnStatus are the results of the limits; "" for none.
	LimitReqStatus, LimitConnStatus string

	// Status is the response's status, 0 as long as there is none.
	Status int
	// Header is the response's header.
	Header http.Header
	// BodyBytes counts the content that was sent.
	BodyBytes int64
	// RequestBody is the request's body if it has been read into memory; "" if not.
	RequestBody string
	// GzipIn counts the content before gzip has compressed it; 0 if it has not.
	GzipIn int64
	// LimitRate is the bytes of content that are sent per second; 0 is no bound, or that none has
	// been chosen yet.
	LimitRate int64
	// Complete reports whether the whole response has been sent.
	Complete bool
	// Upstream is the record of the exchange with the upstream.
	Upstream *culvert.Result
	// UpstreamHeader is the header of its response as received.
	UpstreamHeader http.Header

	set      map[string]string // by the set directive
	captures []string          // $1 and so on, of the last regular expression that matched
	named    map[string]string // named captures
	maps     []evaluated
	id       string // $request_id, once it was used
	link     linkState

	linkExpires string // of $secure_link, once the link has been checked
	passed      []int  // the number of attempts before each internal redirect
}

// Location returns the values of variables that depend on the request's location or on the
// process.
type Location interface {
	// DocumentRoot returns $document_root, Filename $request_filename.
	DocumentRoot() string
	Filename() string
	// InvalidReferer reports whether valid_referers refuses the request's Referer.
	InvalidReferer() bool
	// SecureLink returns $secure_link, and the time until which the link is valid.
	SecureLink() (link, expires string)
	// UserID returns $uid_got and $uid_set.
	UserID() (got, set string)
	// Connections returns the counts of the process's connections.
	Connections() Connections
}

// Branch returns a copy for a subrequest: what it sets does not affect r, and it has a response
// of its own.
func (r *Request) Branch() Request {
	b := *r
	b.set, b.named, b.maps = maps.Clone(r.set), maps.Clone(r.named), slices.Clone(r.maps)
	b.Status, b.BodyBytes, b.Header, b.Upstream, b.UpstreamHeader = 0, 0, nil, nil, nil
	b.passed = nil
	b.Redirected()
	return b
}

// SetVariable sets a variable of the configuration.
func (r *Request) SetVariable(name, value string) {
	if r.set == nil {
		r.set = map[string]string{}
	}
	r.set[name] = value
}

// Capture stores what a regular expression captured: groups[0] is the whole match. names are the
// names of the groups, as regexp.SubexpNames returns them.
func (r *Request) Capture(groups, names []string) {
	r.captures = groups
	for i, name := range names {
		if name != "" && i < len(groups) {
			if r.named == nil {
				r.named = map[string]string{}
			}
			r.named[name] = groups[i]
		}
	}
}

// RemoteAddr returns the client's address without the port.
func (r *Request) RemoteAddr() string {
	host, _ := splitAddr(r.HTTP.RemoteAddr)
	return host
}

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// splitAddr splits the port off an address; that of a unix socket has none.
func splitAddr(text string) (host, port string) {
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
	return splitAddr(addr.String())
}

// ServerPort returns the port that the client connected to.
func (r *Request) ServerPort() string {
	_, port := r.localAddr()
	return port
}
