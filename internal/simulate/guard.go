package simulate

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
)

// guard returns writers and bodies that notice a use after the handler has returned, two uses of one writer and two readers
// of one body at the same time. If plain, writers are net/http's own. Times are compared if exact.
//
// The request is a copy: net/http's server looks at the type of its own request's body when it writes a header, and
// closes a connection if a body that Expect announced was not read.
func guard(j *Journal, plan *GatewayPlan, next http.Handler, plain, exact bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, own *http.Request) {
		r := own.WithContext(own.Context())
		g := &guarded{j: j, plan: plan, w: w, r: r, path: r.URL.Path, start: time.Now(), timed: exact && !plain && r.Method != http.MethodConnect}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &guardedBody{guarded: g, own: own, body: own.Body}
		}
		defer g.end()
		if plain {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(g, r)
	})
}

// guarded is a ResponseWriter around net/http's that knows when its handler has returned. It is a clientside.Server, so that
// it is not bypassed on the way to net/http's writer.
type guarded struct {
	j    *Journal
	plan *GatewayPlan
	w    http.ResponseWriter
	r    *http.Request
	path string

	start time.Time
	timed bool // times are compared: the time is virtual, and the exchange is no tunnel

	passage *Passage // nil before the first filter

	mu      sync.Mutex
	ended   bool
	taken   bool // hijacked
	reading bool
	writing string // the method that writes, "" for none
}

// end is called when the handler returns or panics.
func (g *guarded) end() {
	g.checkWhole()
	g.mu.Lock()
	g.ended = true
	reading, writing := g.reading, g.writing
	g.mu.Unlock()
	if reading && !g.taken {
		g.j.Break("use after end", "%s: the body is still being read when the handler returns", g.path)
	}
	if writing != "" && !g.taken {
		g.j.Break("use after end", "%s: %s lasts when the handler returns", g.path, writing)
	}
	if v := recover(); v != nil {
		if v == errPlanned {
			panic(v)
		}
		if v != http.ErrAbortHandler {
			g.j.Break("panic", "%s: %v\n%s", g.path, v, debug.Stack())
		}
		panic(http.ErrAbortHandler)
	}
}

// check breaks a rule if the handler has returned. One goroutine runs at a time, and few calls wait for the client: so those
// that could run meanwhile do so now, the handler's among them.
func (g *guarded) check(what string) {
	runtime.Gosched()
	g.mu.Lock()
	ended := g.ended && !g.taken
	g.mu.Unlock()
	if ended {
		g.j.Break("use after end", "%s: %s after the handler returned\n%s", g.path, what, debug.Stack())
	}
}

// alone breaks a rule if a write lasts: its goroutine has the writer and its Header until it returns. writes has this one
// last until writing is reset.
func (g *guarded) alone(what string, writes bool) {
	g.mu.Lock()
	writing := g.writing
	if writes {
		g.writing = what
	}
	g.mu.Unlock()
	if writing != "" {
		g.j.Break("two writers", "%s: %s while %s lasts\n%s", g.path, what, writing, debug.Stack())
	}
}

// Header implements http.ResponseWriter.
func (g *guarded) Header() http.Header {
	g.check("Header")
	g.alone("Header", false)
	return g.w.Header()
}

// WriteHeader implements http.ResponseWriter.
func (g *guarded) WriteHeader(status int) {
	defer g.write("WriteHeader")()
	defer g.interim(status)()
	g.w.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (g *guarded) Write(p []byte) (int, error) {
	defer g.write("Write")()
	return g.w.Write(p)
}

// ReadFrom implements io.ReaderFrom.
func (g *guarded) ReadFrom(r io.Reader) (int64, error) {
	defer g.write("ReadFrom")()
	if to, ok := g.w.(io.ReaderFrom); ok {
		return to.ReadFrom(r)
	}
	return io.Copy(struct{ io.Writer }{g.w}, r)
}

// FlushError is what http.ResponseController calls.
func (g *guarded) FlushError() error {
	defer g.write("Flush")()
	return http.NewResponseController(g.w).Flush()
}

// Flush implements http.Flusher.
func (g *guarded) Flush() { _ = g.FlushError() }

// Hijack implements http.Hijacker.
func (g *guarded) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	g.check("Hijack")
	g.alone("Hijack", false)
	c, rw, err := http.NewResponseController(g.w).Hijack()
	if err == nil {
		g.mu.Lock()
		g.taken = true
		g.mu.Unlock()
	}
	return c, rw, err
}

// WriteContinue implements clientside.Server.
func (g *guarded) WriteContinue() {
	defer g.write("WriteContinue")()
	clientside.ServerOf(g.w).WriteContinue()
}

// CloseAfterResponse implements clientside.Server. It may change the header.
func (g *guarded) CloseAfterResponse() {
	g.check("CloseAfterResponse")
	g.alone("CloseAfterResponse", false)
	clientside.ServerOf(g.w).CloseAfterResponse()
}

// Hold implements clientside.Lender, as does Memory.
func (g *guarded) Hold() {
	if l, ok := g.w.(clientside.Lender); ok {
		l.Hold()
	}
}

// Memory implements clientside.Lender.
func (g *guarded) Memory() []string {
	if l, ok := g.w.(clientside.Lender); ok {
		return l.Memory()
	}
	return nil
}

// WriteDeadline implements clientside.Bounded.
func (g *guarded) WriteDeadline() time.Time {
	g.check("WriteDeadline")
	if b, ok := g.w.(clientside.Bounded); ok {
		return b.WriteDeadline()
	}
	return time.Time{}
}

// SetReadDeadline is what http.ResponseController calls.
func (g *guarded) SetReadDeadline(t time.Time) error {
	g.check("SetReadDeadline")
	return http.NewResponseController(g.w).SetReadDeadline(t)
}

// SetWriteDeadline is what http.ResponseController calls.
func (g *guarded) SetWriteDeadline(t time.Time) error {
	g.check("SetWriteDeadline")
	return http.NewResponseController(g.w).SetWriteDeadline(t)
}

// EnableFullDuplex is what http.ResponseController calls.
func (g *guarded) EnableFullDuplex() error {
	g.check("EnableFullDuplex")
	return http.NewResponseController(g.w).EnableFullDuplex()
}

// Unwrap returns net/http's writer, for methods that the guard does not have.
func (g *guarded) Unwrap() http.ResponseWriter { return g.w }

// lateEnd is by how much a read of a body lasts longer that fails (GatewayPlan.LateEnd).
const lateEnd = time.Nanosecond

// guardedBody is a request's body.
type guardedBody struct {
	*guarded
	own  *http.Request // the server's request
	body io.ReadCloser
}

// Read reads from the body, and notices a second reader.
func (b *guardedBody) Read(p []byte) (int, error) {
	b.check("Body.Read")
	b.mu.Lock()
	twice := b.reading
	b.reading = true
	b.mu.Unlock()
	if twice {
		b.j.Break("use after end", "%s: two readers of one body\n%s", b.path, debug.Stack())
	}
	start := time.Now()
	n, err := b.body.Read(p)
	b.checkRead(start)
	if b.plan.LateEnd && err != nil && err != io.EOF {
		time.Sleep(lateEnd) // as a filter's own body may: the handler must not return meanwhile
	}
	if err == io.EOF {
		b.r.Trailer = b.own.Trailer // with trailers that were not announced
	}
	b.mu.Lock()
	b.reading = false
	b.mu.Unlock()
	return n, err
}

// Close closes the body.
func (b *guardedBody) Close() error {
	b.check("Body.Close")
	return b.body.Close()
}
