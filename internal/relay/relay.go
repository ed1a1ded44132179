// Package relay writes a target's response to a client: the sanitised header, the body as
// it arrives, and the trailers. Packages proxy and wsupgrade use it.
package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/errs"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/internal/spool"
)

// Options configures how a response is relayed. The zero value streams it.
type Options struct {
	// Modify, if not nil, is called when the header of resp has been sanitised.
	Modify Modify
	// Begun, if not nil, is called after the header of resp was written and before its body is relayed.
	Begun func()
	// Format, if its Names are not nil when Modify has returned, is how the client's header is written, where the server can.
	Format *fieldnames.Format
	// InPlace is set if resp.Header is the map that the writer's Header returns.
	InPlace bool
	// Flush is the maximum time between a write of content and its flush. 0 flushes whenever
	// the target pauses, a negative value after each write.
	Flush time.Duration
	// WriteTimeout is the maximum time of a write to the client; 0 means no bound.
	WriteTimeout time.Duration
	// Trailer reports whether the trailer field name is relayed; nil means all are.
	Trailer func(name string) bool
	// Buffer holds content that the client has not accepted yet, so that the target is free
	// sooner; nil means no buffer.
	Buffer *spool.Options
	// Drain is set if the target's connection can be used again after a body that was read to its end. A short rest of
	// a body that the client does not get is read then.
	Drain bool
}

// Response writes resp, a final response that is not a 101, to the client and closes its body. The
// header fields of resp are added to those of the writer's Header. It returns how many bytes of
// content were relayed.
//
// If w discards the content (response.Discards), it does not wait for the rest, whose failure is of no
// importance.
//
// A failure is a *culvert.Error with BytesSent set; the caller sets its Target. If HeaderSent is
// set, the caller must abort the response. It is not if Modify has failed, or has given the response a
// status that it can't have: nothing is written then.
func Response(side *clientside.Handle, r *http.Request, resp *http.Response, o Options) (int64, error) {
	defer resp.Body.Close()
	w := side.Writer()
	o.exclude(header.Listed(resp.Header))
	header.SanitizeResponse(resp.StatusCode, resp.Header, "")
	if r.ProtoMajor != 1 { // a 426 has kept them
		delete(resp.Header, "Connection")
		delete(resp.Header, "Upgrade")
	}
	if o.Modify != nil {
		status := resp.StatusCode
		instead, err := o.Modify(resp)
		if err != nil {
			return 0, err
		}
		if instead != nil {
			resp.Body.Close() // now, since the handler may be slow
			o.serve(instead, w, r)
			return 0, nil
		}
		if err := settleStatus(r, resp, status); err != nil {
			return 0, err
		}
	}
	announced := o.copyHeader(w.Header(), resp)
	if announced > 0 && r.ProtoMajor == 1 && r.ProtoAtLeast(1, 1) && r.Method != http.MethodHead {
		delete(w.Header(), "Content-Length") // HTTP/2 has it beside trailers; over HTTP/1.1 they need chunks
	}
	if o.Format != nil && o.Format.Names != nil {
		clientside.FormatHeader(w, *o.Format)
	}
	w.WriteHeader(resp.StatusCode)
	if o.Begun != nil {
		o.Begun()
	}
	n, err := o.copyBody(side, r, resp)
	if err != nil {
		return n, err
	}
	return n, o.copyTrailers(side, resp, announced)
}

// serve has h respond to r. WriteTimeout bounds each write if the server has no WriteTimeout of its own.
func (o Options) serve(h http.Handler, w http.ResponseWriter, r *http.Request) {
	bounded := deadline.BoundUnbounded(w, r, o.WriteTimeout)
	h.ServeHTTP(bounded.Writer(), r)
	bounded.LeaveWritten()
}

// copyHeader adds resp's header fields and the announcement of its trailers to dst, and
// returns how many trailers were announced.
func (o Options) copyHeader(dst http.Header, resp *http.Response) (announced int) {
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
	if names := o.announcedNames(resp.Trailer); len(names) > 0 {
		dst.Add("Trailer", strings.Join(names, ", "))
		return len(names)
	}
	return 0
}

// announcedNames returns the names of the announced trailers that are relayed, in the order and with the spelling of o.Format, and
// behind them in that of the alphabet.
func (o Options) announcedNames(trailers http.Header) (names fieldnames.List) {
	if len(trailers) == 0 {
		return nil
	}
	relayed := make(http.Header, len(trailers))
	for name := range trailers {
		if o.relays(name) {
			relayed[name] = []string{""}
		}
	}
	var order fieldnames.List
	if o.Format != nil {
		order = o.Format.Names
	}
	for name := range order.Lines(relayed) {
		names = append(names, name)
	}
	return names
}

// exclude excludes the trailers that are listed in Connection from those that are relayed.
func (o *Options) exclude(listed []string) {
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

// copyTrailers copies the trailers to the client after the end of the body. It uses net/http's
// TrailerPrefix for trailers that were not announced in the field Trailer. It omits those
// that were announced and not received: for a nil value net/http writes an empty header
// section, and never ends an HTTP/2 stream.
func (o Options) copyTrailers(side *clientside.Handle, resp *http.Response, announced int) error {
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
		// An unannounced trailer needs a chunked body, but a body that is
		// still buffered would be sent with a Content-Length.
		if err := flush(side); err != nil {
			return clientGone(err)
		}
		prefix = http.TrailerPrefix
	}
	h := side.Writer().Header()
	for name, values := range resp.Trailer {
		h[prefix+name] = values
	}
	return nil
}

// flush flushes the response if its writer supports it.
func flush(side *clientside.Handle) error {
	if err := side.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// clientGone returns the failure of a write. It is ClientGone, unless a filter caused it: its transform has failed, or it
// has announced another Content-Length or accepted only a part of a write.
func clientGone(err error) error {
	e := &culvert.Error{Kind: culvert.ClientGone, BytesSent: true, HeaderSent: true, Err: err}
	if failed := (*response.TransformError)(nil); errors.As(err, &failed) || errors.Is(err, http.ErrContentLength) || errors.Is(err, io.ErrShortWrite) {
		e.Kind = culvert.Internal
	}
	return e
}

// bodyBroken returns the failure of a read of the body. The cause is the target, unless the request's
// context has ended or a buffer's disk has failed.
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
