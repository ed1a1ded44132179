package deadline

import (
	"net/http"
	"time"
)

// OwnTimeout is how long a client may take to accept a piece of what a handler of this module responds with by itself,
// a refusal for instance.
const OwnTimeout = time.Minute

// piece is how much is written at once of a longer response: the time of a write is that of one piece.
const piece = 64 << 10

// Bounded is a writer for a response that a handler makes itself. Each write of a piece of it is bounded, and so is
// what the server writes when the handler has returned. Leave must be called when the response is there as a whole.
type Bounded struct {
	http.ResponseWriter
	writes Deadline
}

// Bound returns a Bounded around w, which responds to r. timeout bounds each piece, to a quarter; 0 means no bound.
func Bound(w http.ResponseWriter, r *http.Request, timeout time.Duration) *Bounded {
	b := &Bounded{ResponseWriter: w}
	b.writes.StartWrites(w, r, timeout)
	return b
}

// BoundOwn is Bound with OwnTimeout for where no option says how long a client may take: the server's WriteTimeout, which
// is one for the whole response, stays where there is one.
func BoundOwn(w http.ResponseWriter, r *http.Request) *Bounded {
	if serverTimeout(r) > 0 {
		return &Bounded{ResponseWriter: w}
	}
	return Bound(w, r, OwnTimeout)
}

// BoundHeld is BoundOwn for a response that was held while another handler made it. A deadline that this one has left
// for what the server still had to write is not that of the response.
func BoundHeld(w http.ResponseWriter, r *http.Request) *Bounded {
	b := BoundOwn(w, r)
	if b.writes.stream != nil {
		_ = set(w, true, time.Time{})
	}
	return b
}

// serverTimeout returns the WriteTimeout of the server that r came to, 0 for none.
func serverTimeout(r *http.Request) time.Duration {
	if s, _ := r.Context().Value(http.ServerContextKey).(*http.Server); s != nil {
		return max(0, s.WriteTimeout)
	}
	return 0
}

// Unwrap serves http.ResponseController.
func (b *Bounded) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *Bounded) Write(p []byte) (n int, err error) {
	for len(p) > piece && err == nil {
		var m int
		m, err = b.write(p[:piece])
		n, p = n+m, p[m:]
	}
	if err != nil {
		return n, err
	}
	m, err := b.write(p)
	return n + m, err
}

func (b *Bounded) write(p []byte) (int, error) {
	b.writes.Begin()
	defer b.writes.End()
	return b.ResponseWriter.Write(p)
}

// Flush serves handlers that assert http.Flusher.
func (b *Bounded) Flush() { _ = b.FlushError() }

// FlushError serves http.ResponseController.
func (b *Bounded) FlushError() error {
	b.writes.Begin()
	defer b.writes.End()
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Leave ends the use of b. What the server holds is written when the handler has returned.
func (b *Bounded) Leave() { b.writes.Leave() }
