package engine

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/spool"
	"github.com/culvert-go/culvert/nginx/conf"
)

// clientBodyModule bounds the bodies of requests, and the time that clients take.
var clientBodyModule = module{
	directives: []directive{
		{name: "client_body_buffer_size", compile: setSize(clientBodySlot, func(s *clientBodySettings) *int64 { return &s.memory })},
		{name: "client_body_in_file_only", compile: clientBodyInFileOnly},
		{name: "client_body_temp_path", compile: clientBodyTempPath},
		{name: "client_body_timeout", compile: setDuration(clientBodySlot, func(s *clientBodySettings) *time.Duration { return &s.timeout })},
		{name: "client_max_body_size", compile: setSize(clientBodySlot, func(s *clientBodySettings) *int64 { return &s.limit })},
		{name: "send_timeout", compile: setDuration(clientBodySlot, func(s *clientBodySettings) *time.Duration { return &s.sendTimeout })},
	},
	hooks: hooks{located: limitBody},
}

type clientBodySettings struct {
	limit   int64  // of a body's length; 0 is none
	memory  int64  // client_body_buffer_size
	tempDir string // client_body_temp_path; "" is the system's
	// file is client_body_in_file_only: with another value than Unnamed each body is in a file.
	file spool.Naming
	// timeout bounds the time between two reads of a body that is proxied, not that of the whole
	// body; sendTimeout that between two writes to the client of a response of an upstream, or of a file.
	timeout, sendTimeout time.Duration
}

var clientBodySlot = newSlot(clientBodySettings{limit: 1 << 20, memory: 16 << 10, timeout: time.Minute, sendTimeout: time.Minute})

// clientBodyInFileOnly compiles "client_body_in_file_only on|clean|off".
func clientBodyInFileOnly(_ *compiler, l *level, d *conf.Directive) error {
	naming, ok := map[string]spool.Naming{"off": spool.Unnamed, "clean": spool.NamedUntilClose, "on": spool.Kept}[strings.ToLower(d.Args[0])]
	if !ok {
		return d.Errorf("invalid value \"%s\"", d.Args[0])
	}
	clientBodySlot.edit(l).file = naming
	return nil
}

// spool returns how the body of r is held. The directory is made with the first file in it: to check a configuration must
// change nothing.
func (s *clientBodySettings) spool(r *http.Request) *spool.Options {
	o := &spool.Options{Memory: s.memory, Disk: 1 << 62, Dir: s.tempDir, MakeDir: s.tempDir != "", Name: s.file}
	switch {
	case s.file != spool.Unnamed:
		o.Memory = 0
	case r.ContentLength > 0 && r.ProtoMajor == 1:
		o.Memory = max(s.memory, s.memory+s.memory/4-1) // nginx makes a buffer of that size rather than a file
	}
	return o
}

// withoutFile returns s without client_body_in_file_only, which is for bodies that are read as a whole.
func (s *clientBodySettings) withoutFile() *clientBodySettings {
	if s.file == spool.Unnamed {
		return s
	}
	streamed := *s
	streamed.file = spool.Unnamed
	return &streamed
}

// clientBodyTempPath sets the directory. Files in it have no names, unless client_body_in_file_only says so.
func clientBodyTempPath(c *compiler, l *level, d *conf.Directive) error {
	clientBodySlot.edit(l).tempDir = c.path(d.Args[0])
	return nil
}

// limitBody refuses a request whose announced content is too large, and bounds what is read of a
// chunked one: the proxy responds with 413 at the bound.
func limitBody(x *exchange, w http.ResponseWriter) int {
	limit := clientBodySlot.of(x.level).limit
	if limit == 0 || x.HTTP.Body == nil || x.HTTP.Body == http.NoBody {
		return 0
	}
	if x.HTTP.ContentLength > limit {
		x.logError("client intended to send too large body")
		return http.StatusRequestEntityTooLarge
	}
	if x.HTTP.ContentLength < 0 {
		x.HTTP.Body = boundedBody{http.MaxBytesReader(w, x.HTTP.Body, limit), x.HTTP.Body}
	}
	return 0
}

// boundedBody is the bounded body of a client.
type boundedBody struct {
	io.ReadCloser
	client io.Reader
}

// Ready implements clientbody.Receiver.
func (b boundedBody) Ready() bool { return clientbody.Ready(b.client) }

// Received implements clientbody.Receiver.
func (b boundedBody) Received() bool { return clientbody.Received(b.client) }
