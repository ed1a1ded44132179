// Package vars holds the state of one request and nginx's variables, which
// read it. A text with variables is compiled once, at load, to a Value.
package vars

import (
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/filters"
)

// Request is what the engine knows of one request. Only the request's own
// goroutine uses it.
type Request struct {
	// HTTP is the request as the client sent it, sanitised.
	HTTP *http.Request
	// Line is the request line as the client sent it.
	Line string
	// PeerAddr is the address and port of the connection's other end where HTTP.RemoteAddr
	// is what a proxy has told; else it is "".
	PeerAddr string
	// RequestURI is the path and the query as the client sent them.
	RequestURI string
	// URI is the decoded and normalised path. An internal redirect changes it.
	URI string
	// Args is the query, without the question mark, as it was sent.
	Args string
	// Internal says whether URI comes from an internal redirect.
	Internal bool
	// Start is when the request's head had been read.
	Start time.Time
	// Host is $host: the server's name as the client wrote it, in lower case
	// and without the port, or else the first server_name.
	Host string
	// ServerName is the first server_name of the server that was chosen.
	ServerName string
	// HTTPS says whether the client's connection is encrypted.
	HTTPS bool
	// Conn is the client's connection.
	Conn *Conn

	// DocumentRoot and Filename are those of the current location.
	DocumentRoot, Filename func(*Request) string
	// ProxyHost and ProxyPort are those of the upstream that is asked.
	ProxyHost, ProxyPort string

	// Status is that of the answer, 0 as long as there is none.
	Status int
	// Header is the answer's head.
	Header http.Header
	// BodyBytes counts the content that was sent.
	BodyBytes int64
	// Upstream is the record of the exchange with the upstream.
	Upstream *filters.Result
	// UpstreamHeader is the head of its answer as it came.
	UpstreamHeader http.Header

	set      map[string]string // by the set directive
	captures []string          // $1 and so on, of the last regular expression that matched
	named    map[string]string // named captures
	maps     map[*Map]string   // maps that were evaluated
	id       string            // $request_id, once it was asked for
}

// SetVariable gives a variable of the configuration's a value.
func (r *Request) SetVariable(name, value string) {
	if r.set == nil {
		r.set = map[string]string{}
	}
	r.set[name] = value
}

// Capture keeps what a regular expression captured: groups[0] is the whole
// match. names are the names of the groups, as regexp.SubexpNames returns them.
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
	host, _, err := net.SplitHostPort(r.HTTP.RemoteAddr)
	if err != nil {
		return r.HTTP.RemoteAddr
	}
	return host
}

// localAddr returns the address that the client connected to.
func (r *Request) localAddr() (host, port string) {
	addr, ok := r.HTTP.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return "", ""
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String(), ""
	}
	return host, port
}

// ServerPort returns the port that the client connected to.
func (r *Request) ServerPort() string {
	_, port := r.localAddr()
	return port
}
