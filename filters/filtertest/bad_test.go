package filtertest_test

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters/filtertest"
)

// TestBadFilters shows that middleware with common faults fails the checks of these faults, and
// passes the others.
func TestBadFilters(t *testing.T) {
	var running sync.WaitGroup // all at once: most of them wait for what never comes
	for _, test := range []struct {
		name   string
		filter culvert.Filter
		fails  []string
	}{
		{"a status recorder without Unwrap", wrap(func(w http.ResponseWriter) http.ResponseWriter { return &recorder{ResponseWriter: w} }),
			[]string{"deadlines", "flush", "full duplex", "hijack", "readfrom", "trailers"}},
		{"one that swallows interim responses", wrap(func(w http.ResponseWriter) http.ResponseWriter { return &onceOnly{transparent: transparent{w}} }),
			[]string{"interim"}},
		{"one that hides Hijacker", wrap(func(w http.ResponseWriter) http.ResponseWriter { return noHijacker{w, transparent{w}} }),
			[]string{"hijack"}},
		{"one that hides Flusher", wrap(func(w http.ResponseWriter) http.ResponseWriter { return noFlusher{w, transparent{w}} }),
			[]string{"flush"}},
		{"one that hides ReaderFrom", wrap(func(w http.ResponseWriter) http.ResponseWriter { return noReaderFrom{w, transparent{w}} }),
			[]string{"readfrom"}},
		{"one that sends trailers nowhere", wrap(func(w http.ResponseWriter) http.ResponseWriter {
			return &ownHeader{transparent: transparent{w}, header: http.Header{}}
		}), []string{"trailers"}},
		{"one that buffers the response", buffering,
			[]string{"abort", "deadlines", "flush", "full duplex", "hijack", "interim", "readfrom", "trailers"}},
		{"one that recovers from everything", recovering, []string{"abort"}},
		{"one that cleans the query", cleaning, []string{"request"}},
		{"one that reads the body ahead", readingAhead, []string{"deadlines", "full duplex", "request trailers"}},
	} {
		running.Go(func() { t.Run(test.name, func(t *testing.T) { checkFails(t, test.filter, test.fails) }) })
	}
	running.Wait()
}

// TestExcept leaves out the checks that a filter fails, in Check and in Test, and only those.
func TestExcept(t *testing.T) {
	failed := filtertest.Check(readingAhead, filtertest.Except("deadlines"), filtertest.Except("full duplex", "request"))
	if len(failed) != 1 || failed[0].Check != "request trailers" {
		t.Errorf("failed %v, want request trailers alone", failed)
	}
	filtertest.Test(t, readingAhead, filtertest.Except("deadlines", "full duplex", "request trailers"))
	defer func() {
		if got := recover(); got != `filtertest: there is no check "flushes"` {
			t.Errorf("an unknown name: %v", got)
		}
	}()
	filtertest.Except("flush", "flushes")
}

// checkFails checks that f fails the checks of these names, and no other.
func checkFails(t *testing.T, f culvert.Filter, names []string) {
	failures := filtertest.Check(f)
	var got []string
	for _, failure := range failures {
		got = append(got, failure.Check)
	}
	slices.Sort(got)
	if !slices.Equal(got, names) {
		t.Errorf("failed checks %q, want %q", got, names)
		for _, failure := range failures {
			t.Log(failure)
		}
	}
}

func wrap(w func(http.ResponseWriter) http.ResponseWriter) culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { next.ServeHTTP(w(rw), r) })
	}
}

// recorder is the status recorder of many tutorials.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// transparent passes every call on. Each of the bad writers below breaks one method of it.
type transparent struct{ http.ResponseWriter }

func (t transparent) Unwrap() http.ResponseWriter { return t.ResponseWriter }
func (t transparent) Flush()                      { t.ResponseWriter.(http.Flusher).Flush() }
func (t transparent) ReadFrom(r io.Reader) (int64, error) {
	return t.ResponseWriter.(io.ReaderFrom).ReadFrom(r)
}
func (t transparent) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return t.ResponseWriter.(http.Hijacker).Hijack()
}

// onceOnly takes an interim response for the final one.
type onceOnly struct {
	transparent
	wrote bool
}

func (o *onceOnly) WriteHeader(status int) {
	if o.wrote {
		return
	}
	o.wrote = true
	if status < 200 {
		status = http.StatusOK
	}
	o.ResponseWriter.WriteHeader(status)
}

type (
	noHijacker struct {
		http.ResponseWriter
		t transparent
	}
	noFlusher struct {
		http.ResponseWriter
		t transparent
	}
	noReaderFrom struct {
		http.ResponseWriter
		t transparent
	}
)

func (n noHijacker) Flush()                              { n.t.Flush() }
func (n noHijacker) Unwrap() http.ResponseWriter         { return n.ResponseWriter }
func (n noHijacker) ReadFrom(r io.Reader) (int64, error) { return n.t.ReadFrom(r) }

func (n noFlusher) Unwrap() http.ResponseWriter                     { return n.ResponseWriter }
func (n noFlusher) ReadFrom(r io.Reader) (int64, error)             { return n.t.ReadFrom(r) }
func (n noFlusher) Hijack() (net.Conn, *bufio.ReadWriter, error)    { return n.t.Hijack() }
func (n noReaderFrom) Flush()                                       { n.t.Flush() }
func (n noReaderFrom) Unwrap() http.ResponseWriter                  { return n.ResponseWriter }
func (n noReaderFrom) Hijack() (net.Conn, *bufio.ReadWriter, error) { return n.t.Hijack() }

// ownHeader holds the handler's header fields, and copies them when the header is written.
type ownHeader struct {
	transparent
	header http.Header
	wrote  bool
}

func (o *ownHeader) Header() http.Header { return o.header }
func (o *ownHeader) WriteHeader(status int) {
	h := o.ResponseWriter.Header()
	clear(h)
	maps.Copy(h, o.header)
	o.wrote = o.wrote || status >= 200
	o.ResponseWriter.WriteHeader(status)
}
func (o *ownHeader) Write(p []byte) (int, error) {
	if !o.wrote {
		o.WriteHeader(http.StatusOK)
	}
	return o.ResponseWriter.Write(p)
}
func (o *ownHeader) ReadFrom(r io.Reader) (int64, error) {
	if !o.wrote {
		o.WriteHeader(http.StatusOK)
	}
	return o.transparent.ReadFrom(r)
}

// buffering sends the response when it is complete.
func buffering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := &buffered{header: w.Header(), status: http.StatusOK}
		defer func() {
			if recover() != nil {
				b.status = http.StatusInternalServerError
			}
			w.WriteHeader(b.status)
			_, _ = w.Write(b.body.Bytes())
		}()
		next.ServeHTTP(b, r)
	})
}

type buffered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffered) Header() http.Header         { return b.header }
func (b *buffered) WriteHeader(status int)      { b.status = status }
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }

func recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }()
		next.ServeHTTP(w, r)
	})
}

func cleaning(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.RawQuery = r.URL.Query().Encode()
		next.ServeHTTP(w, r)
	})
}

func readingAhead(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		clone := r.Clone(r.Context())
		clone.Trailer = nil
		clone.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, clone)
	})
}
