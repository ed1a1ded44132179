// Package relay writes a target's answer to a client: sanitised head, body as
// it arrives, trailers. The proxy and the upgrade handshake share it.
package relay

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/internal/head"
)

// Response writes resp, a final answer that is not a 101, to w and closes its
// body. The fields of resp are added to those that w.Header() already holds.
//
// A failure is a *fault.Error with HeadSent set and Wrote true; its Target is
// left to the caller. The caller must then abort the answer.
func Response(w http.ResponseWriter, r *http.Request, resp *http.Response) error {
	defer resp.Body.Close()
	head.SanitizeResponse(resp.StatusCode, resp.Header, "")
	announced := copyHead(w.Header(), resp)
	w.WriteHeader(resp.StatusCode)
	if err := copyBody(w, resp, r); err != nil {
		return err
	}
	return copyTrailers(w, resp, announced)
}

// copyHead adds resp's fields and the announcement of its trailers to dst, and
// returns how many trailers were announced.
func copyHead(dst http.Header, resp *http.Response) (announced int) {
	for name, values := range resp.Header {
		dst[name] = append(dst[name], values...)
	}
	if _, ok := dst["Content-Type"]; !ok {
		dst["Content-Type"] = nil // keep net/http from inventing one
	}
	for name := range resp.Trailer {
		dst.Add("Trailer", name)
	}
	return len(resp.Trailer)
}

// copyBody copies until the end of the body. It flushes whenever the target
// paused: a stream's head at once, then after every read that left more to
// come.
func copyBody(w http.ResponseWriter, resp *http.Response, r *http.Request) error {
	if r.Method == http.MethodHead || resp.ContentLength == 0 {
		return nil
	}
	flush := http.NewResponseController(w).Flush
	left := resp.ContentLength
	if left < 0 {
		if err := flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return clientGone(err)
		}
	}
	buf := bufpool.Get()
	defer bufpool.Put(buf)
	for {
		n, readErr := resp.Body.Read(buf[:])
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return clientGone(err)
			}
			left -= int64(n)
		}
		switch {
		case readErr == io.EOF:
			return nil
		case readErr != nil:
			_ = flush() // the abort that follows would take what came with it
			return bodyBroken(r.Context(), readErr)
		case n > 0 && n < len(buf) && left != 0:
			if err := flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return clientGone(err)
			}
		}
	}
}

// copyTrailers hands the trailers over once the body has ended. Trailers that
// no Trailer field announced go out too, as net/http's TrailerPrefix allows.
func copyTrailers(w http.ResponseWriter, resp *http.Response, announced int) error {
	if len(resp.Trailer) == 0 {
		return nil
	}
	prefix := ""
	if len(resp.Trailer) != announced {
		// An unannounced trailer needs a chunked body, and a body that is
		// still buffered would be sent with a Content-Length.
		if err := http.NewResponseController(w).Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return clientGone(err)
		}
		prefix = http.TrailerPrefix
	}
	for name, values := range resp.Trailer {
		w.Header()[prefix+name] = values
	}
	return nil
}

func clientGone(err error) error {
	return &fault.Error{Kind: fault.ClientGone, Wrote: true, HeadSent: true, Err: err}
}

// bodyBroken tells a target that broke off from a client whose leaving
// cancelled the read.
func bodyBroken(ctx context.Context, err error) error {
	kind := fault.Body
	if errors.Is(ctx.Err(), context.Canceled) {
		kind = fault.ClientGone
	}
	return &fault.Error{Kind: kind, Wrote: true, HeadSent: true, Err: err}
}
