// Package vars holds the state of one request and nginx's variables, which
// read it. A text with variables is compiled once, at load, to a Value.
package vars

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
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
	// ClientVerified reports whether the client's certificate has been verified, and ClientError is what is wrong with it.
	ClientVerified bool
	ClientError    error
	// Conn is the client's connection.
	Conn *Conn

	// Location is the current one; nil if there is none.
	Location Location
	// ProxyHost and ProxyPort are those of the upstream that is asked.
	ProxyHost, ProxyPort string

	// LimitReqStatus and LimitConnStatus say what limits have made of the request; "" for
	// none.
	LimitReqStatus, LimitConnStatus string

	// Status is that of the answer, 0 as long as there is none.
	Status int
	// Header is the answer's head.
	Header http.Header
	// BodyBytes counts the content that was sent.
	BodyBytes int64
	// RequestBody is the request's body if it has been read into memory; "" if not.
	RequestBody string
	// GzipIn counts the content before gzip has compressed it; 0 if it has not.
	GzipIn int64
	// LimitRate is how many bytes of content are sent in a second; 0 is no bound, or that none
	// has been chosen yet.
	LimitRate int64
	// Complete reports whether the response has been sent as a whole.
	Complete bool
	// Upstream is the record of the exchange with the upstream.
	Upstream *filters.Result
	// UpstreamHeader is the head of its answer as it came.
	UpstreamHeader http.Header

	set      map[string]string // by the set directive
	captures []string          // $1 and so on, of the last regular expression that matched
	named    map[string]string // named captures
	maps     []evaluated
	id       string // $request_id, once it was asked for
	link     linkState

	linkExpires string // $secure_link's, once the link has been looked at
	passed      []int  // how many tries came before each redirect inside the server
}

// Location is what variables ask of where the request is: of its location, and of the process.
type Location interface {
	// DocumentRoot is $document_root, Filename $request_filename.
	DocumentRoot() string
	Filename() string
	// InvalidReferer says whether valid_referers refuses the request's.
	InvalidReferer() bool
	// SecureLink is $secure_link, and until when the link is valid.
	SecureLink() (link, expires string)
	// UserID is $uid_got and $uid_set.
	UserID() (got, set string)
	// Connections counts those of the process.
	Connections() Connections
}

// Branch returns a copy for a subrequest: what it sets does not reach r, and its answer is
// its own.
func (r *Request) Branch() Request {
	b := *r
	b.set, b.named, b.maps = maps.Clone(r.set), maps.Clone(r.named), slices.Clone(r.maps)
	b.Status, b.BodyBytes, b.Header, b.Upstream, b.UpstreamHeader = 0, 0, nil, nil, nil
	b.passed = nil
	b.Redirected()
	return b
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
	host, _ := splitAddr(r.HTTP.RemoteAddr)
	return host
}

// unixPrefix begins the address of a unix socket.
const unixPrefix = "unix:"

// splitAddr takes the port off an address; that of a unix socket has none.
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

// ServerAddr is the address that the client connected to, without its port.
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
