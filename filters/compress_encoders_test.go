package filters_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/filters/filtertest"
)

// own is an encoder of a coding that is gzip by another name.
func own(name string, made *atomic.Int32) filters.Encoder {
	return filters.Encoder{Name: name, New: func() filters.EncodingWriter {
		made.Add(1)
		return gzip.NewWriter(nil)
	}}
}

// A registered encoder is offered in its place, before those of the package if no order is set.
func TestCompressRegisteredEncoders(t *testing.T) {
	var made atomic.Int32
	for _, test := range []struct {
		encodings    []string
		accept, want string
	}{
		{nil, "gzip, zstd, own", "own"},
		{nil, "gzip, zstd, own;q=0.5", "zstd"},
		{nil, "gzip", "gzip"},
		{nil, "own;q=0, identity", ""},
		{[]string{"gzip", "own"}, "gzip, zstd, own", "gzip"},
		{[]string{"gzip", "own"}, "zstd, own", "own"},
	} {
		f := good(t)(filters.Compress(filters.CompressOptions{Encodings: test.encodings, Encoders: []filters.Encoder{own("own", &made)}}))
		for range 2 { // the second one with the same writer
			resp, body := through(f, respond(page, "Content-Type", "text/html"), get("Accept-Encoding", test.accept))
			if got := resp.Header.Get("Content-Encoding"); got != test.want {
				t.Errorf("%v for %q: %q, want %q", test.encodings, test.accept, got, test.want)
			}
			if test.want != "own" {
				continue
			}
			d, err := gzip.NewReader(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if content, err := io.ReadAll(d); string(content) != page || err != nil {
				t.Errorf("%d bytes, %v", len(content), err)
			}
		}
	}
}

func TestCompressWithRegisteredEncoderKeepsWhatProxyingNeeds(t *testing.T) {
	var made atomic.Int32
	filtertest.Test(t, good(t)(filters.Compress(filters.CompressOptions{Encoders: []filters.Encoder{own("own", &made)}})), filtertest.TransformsBody())
}

// A panic of an encoder ends its response, and the encoder is not used again.
func TestCompressWithPanickingEncoder(t *testing.T) {
	f := good(t)(filters.Compress(filters.CompressOptions{Encoders: []filters.Encoder{{Name: "bad", New: func() filters.EncodingWriter { return &panicking{} }}}}))
	for range 2 {
		func() {
			defer func() {
				if v := recover(); v != "a bug" {
					t.Errorf("panic %v", v)
				}
			}()
			f(respond(page, "Content-Type", "text/html")).ServeHTTP(httptest.NewRecorder(), get("Accept-Encoding", "bad"))
		}()
	}
}

type panicking struct{ used bool }

func (p *panicking) Reset(w io.Writer) {
	if p.used {
		panic("it is used again")
	}
}

func (p *panicking) Write([]byte) (int, error) {
	p.used = true
	panic("a bug")
}

func (p *panicking) Flush() error { return nil }

func (p *panicking) Close() error { return nil }

// An encoder that could not be used is an error.
func TestCompressRefusesEncoders(t *testing.T) {
	var made atomic.Int32
	for want, o := range map[string]filters.CompressOptions{
		`invalid name "" of an Encoder`:                           {Encoders: []filters.Encoder{own("", &made)}},
		`invalid name "Br" of an Encoder`:                         {Encoders: []filters.Encoder{own("Br", &made)}},
		`invalid name "*" of an Encoder`:                          {Encoders: []filters.Encoder{own("*", &made)}},
		`invalid name "identity" of an Encoder`:                   {Encoders: []filters.Encoder{own("identity", &made)}},
		`two encoders of "gzip"`:                                  {Encoders: []filters.Encoder{own("gzip", &made)}},
		`two encoders of "br"`:                                    {Encoders: []filters.Encoder{own("br", &made), own("br", &made)}},
		`the Encoder of "br" is not one of Encodings`:             {Encodings: []string{"gzip"}, Encoders: []filters.Encoder{own("br", &made)}},
		`the Encoder of "br" has no New, or one that returns nil`: {Encoders: []filters.Encoder{{Name: "br"}}},
		`unknown encoding "br"`:                                   {Encodings: []string{"br"}},
	} {
		bad(t, "filters: Compress: "+want)(filters.Compress(o))
	}
	bad(t, `filters: Compress: the Encoder of "br" has no New, or one that returns nil`)(filters.Compress(filters.CompressOptions{
		Encoders: []filters.Encoder{{Name: "br", New: func() filters.EncodingWriter { return nil }}}}))
}

// The end of an encoder that fails, or panics, is no end of the response: its client must not take what it has for the
// whole. An encoder is used again, without the writer of the response before, unless it has panicked.
func TestCompressWithEncoderThatFailsAtItsEnd(t *testing.T) {
	for name, test := range map[string]struct {
		end   func() error
		panic any
		made  int32
	}{
		"good":   {func() error { return nil }, nil, 1},
		"fails":  {func() error { return errors.New("disk full") }, http.ErrAbortHandler, 1},
		"panics": {func() error { panic("a bug") }, "a bug", 3},
	} {
		t.Run(name, func(t *testing.T) {
			var made atomic.Int32
			var last *ending
			first := true
			f := good(t)(filters.Compress(filters.CompressOptions{Encoders: []filters.Encoder{{Name: "own", New: func() filters.EncodingWriter {
				if !first { // New is called once to see that it returns something
					made.Add(1)
				}
				first = false
				last = &ending{end: test.end}
				return last
			}}}}))
			for range 3 {
				func() {
					defer func() {
						if v := recover(); v != test.panic {
							t.Errorf("panic %v, want %v", v, test.panic)
						}
					}()
					ctx, result := filters.WithResult(t.Context())
					defer func() {
						e := (*culvert.Error)(nil)
						if failed := errors.As(result.Err, &e) && e.Kind == culvert.Internal; failed != (name == "fails") {
							t.Errorf("the result has %v", result.Err)
						}
					}()
					f(respond(page, "Content-Type", "text/html")).ServeHTTP(httptest.NewRecorder(), get("Accept-Encoding", "own").WithContext(ctx))
				}()
				if last.to != nil != (name == "panics") {
					t.Errorf("the writer of the response is kept: %v", last.to)
				}
			}
			// A sync.Pool may drop what it has at any time, under the race detector at random.
			if n := made.Load(); name == "panics" && n != test.made || n < test.made {
				t.Errorf("%d encoders, want %d", n, test.made)
			}
		})
	}
}

// ending is an encoder that changes nothing.
type ending struct {
	to  io.Writer
	end func() error
}

func (e *ending) Reset(w io.Writer)           { e.to = w }
func (e *ending) Write(p []byte) (int, error) { return e.to.Write(p) }
func (e *ending) Flush() error                { return nil }
func (e *ending) Close() error                { return e.end() }
