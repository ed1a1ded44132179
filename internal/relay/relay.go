// Package relay writes a target's answer to a client: sanitised head, body as
// it arrives, trailers. The proxy and the upgrade handshake share it.
package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/internal/spool"
)

// Options say how an answer is relayed. The zero value streams it.
type Options struct {
	// Head is called when the head of resp has been sanitised; nil for nobody. It
	// may change resp.Header. A handler that it returns responds in resp's place, or leaves that to
	// a handler around.
	Head func() http.Handler
	// Begun, if not nil, is called when the writer has resp's header, before its body is relayed.
	Begun func()
	// InPlace says that resp.Header is the writer's Header itself.
	InPlace bool
	// Flush is the longest time that content may wait for more; 0 flushes
	// whenever the target pauses, a negative value after each write.
	Flush time.Duration
	// WriteTimeout bounds each write to the client; 0 means no bound.
	WriteTimeout time.Duration
	// Trailer says which trailers are relayed; nil means all.
	Trailer func(name string) bool
	// Buffer holds what the client does not take yet, so that the target is done
	// sooner; nil means none.
	Buffer *spool.Options
}

// Response writes resp, a final answer that is not a 101, to w and closes its
// body. The fields of resp are added to those that w.Header() already holds. It
// returns how many bytes of content were relayed.
//
// A failure is a *culvert.Error with HeadSent set and Wrote true; its Target is
// left to the caller. The caller must then abort the answer.
func Response(w http.ResponseWriter, r *http.Request, resp *http.Response, o Options) (int64, error) {
	defer resp.Body.Close()
	o.unlisted(header.Listed(resp.Header))
	header.SanitizeResponse(resp.StatusCode, resp.Header, "")
	if r.ProtoMajor != 1 { // a 426 has kept them
		delete(resp.Header, "Connection")
		delete(resp.Header, "Upgrade")
	}
	if o.Head != nil {
		if instead := o.Head(); instead != nil {
			resp.Body.Close() // before: the handler may take its time
			o.serve(instead, w, r)
			return 0, nil
		}
	}
	announced := o.copyHead(w.Header(), resp)
	if announced > 0 && r.ProtoMajor == 1 && r.ProtoAtLeast(1, 1) && r.Method != http.MethodHead {
		delete(w.Header(), "Content-Length") // HTTP/2 has it beside trailers; over HTTP/1.1 they need chunks
	}
	w.WriteHeader(resp.StatusCode)
	if o.Begun != nil {
		o.Begun()
	}
	n, err := o.copyBody(w, r, resp)
	if err != nil {
		return n, err
	}
	return n, o.copyTrailers(w, resp, announced)
}

// serve has h respond to r, each write in its time where the server has none for the whole response.
func (o Options) serve(h http.Handler, w http.ResponseWriter, r *http.Request) {
	bounded := deadline.BoundUnbounded(w, r, o.WriteTimeout)
	h.ServeHTTP(bounded.Writer(), r)
	bounded.LeaveWritten()
}

// copyHead adds resp's fields and the announcement of its trailers to dst, and
// returns how many trailers were announced. resp's fields may be dst already.
func (o Options) copyHead(dst http.Header, resp *http.Response) (announced int) {
	if !o.InPlace {
		for name, values := range resp.Header {
			if had := dst[name]; had == nil {
				dst[name] = values
			} else {
				dst[name] = append(had, values...)
			}
		}
	}
	if _, ok := dst["Content-Type"]; !ok {
		dst["Content-Type"] = nil // keep net/http from inventing one
	}
	for name := range resp.Trailer {
		if o.relays(name) {
			dst.Add("Trailer", name)
			announced++
		}
	}
	return announced
}

// unlisted takes the trailers that Connection lists out of those that are relayed.
func (o *Options) unlisted(listed []string) {
	if listed == nil {
		return
	}
	policy := o.Trailer
	o.Trailer = func(name string) bool {
		return !slices.Contains(listed, name) && (policy == nil || policy(name))
	}
}

func (o Options) relays(trailer string) bool {
	return header.ForwardsTrailer(trailer) && (o.Trailer == nil || o.Trailer(trailer))
}

// copyTrailers hands the trailers over once the body has ended. Trailers that
// no Trailer field announced are sent too, as net/http's TrailerPrefix allows.
// Those that were announced and did not come are left out: for a nil value net/http
// writes a header section of nothing, and an HTTP/2 stream that never ends.
func (o Options) copyTrailers(w http.ResponseWriter, resp *http.Response, announced int) error {
	names := len(resp.Trailer)
	for name, values := range resp.Trailer {
		if !o.relays(name) {
			delete(resp.Trailer, name)
			names--
		} else if len(values) == 0 {
			delete(resp.Trailer, name)
		}
	}
	if len(resp.Trailer) == 0 {
		return nil
	}
	prefix := ""
	if names != announced {
		// An unannounced trailer needs a chunked body, and a body that is
		// still buffered would be sent with a Content-Length.
		if err := flush(w); err != nil {
			return clientGone(err)
		}
		prefix = http.TrailerPrefix
	}
	for name, values := range resp.Trailer {
		w.Header()[prefix+name] = values
	}
	return nil
}

// flush flushes w if it can be.
func flush(w http.ResponseWriter) error {
	if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// clientGone is the failure of a write: the client's, unless a filter's transform has failed, or what stands between has
// announced another length or accepted less than it was given.
func clientGone(err error) error {
	e := &culvert.Error{Kind: culvert.ClientGone, BytesSent: true, HeaderSent: true, Err: err}
	if failed := (*response.TransformError)(nil); errors.As(err, &failed) || errors.Is(err, http.ErrContentLength) || errors.Is(err, io.ErrShortWrite) {
		e.Kind = culvert.Internal
	}
	return e
}

// bodyBroken tells a target that broke off from a client whose leaving
// cancelled the read.
func bodyBroken(ctx context.Context, err error) error {
	kind := culvert.BodyBroken
	switch disk := (*spool.DiskError)(nil); {
	case ctx.Err() != nil:
		kind = errs.KindOfContext(ctx)
	case errors.As(err, &disk): // of a buffer
		kind = culvert.Internal
	}
	return &culvert.Error{Kind: kind, BytesSent: true, HeaderSent: true, Err: err}
}
