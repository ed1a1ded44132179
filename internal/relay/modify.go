package relay

import (
	"context"
	"fmt"
	"net/http"

	"github.com/culvert-go/culvert"
)

// Modify changes the Header and the StatusCode of a response. A handler that it returns responds in
// the response's place, or leaves that to a handler around. An error, which is a *culvert.Error, is Response's, and nothing is
// written.
type Modify func(*http.Response) (instead http.Handler, err error)

// modifyKey is the context key of a Modify.
type modifyKey struct{}

// WithModify returns a context of an outbound request with which package wsupgrade calls modify for
// its final response, or for its 101.
func WithModify(ctx context.Context, modify Modify) context.Context {
	return context.WithValue(ctx, modifyKey{}, modify)
}

// ModifyOf returns the Modify of ctx, nil if it has none.
func ModifyOf(ctx context.Context) Modify {
	modify, _ := ctx.Value(modifyKey{}).(Modify)
	return modify
}

// settleStatus makes the framing of resp fit its status, if that was another one when it was received.
// Content is relayed only if both statuses have some: where one has none, it is left out, with its
// length and its trailers. The error is of a status that no final response to r can have.
func settleStatus(r *http.Request, resp *http.Response, received int) error {
	status := resp.StatusCode
	switch {
	case status == received:
		return nil
	case status < 200 || status > 999, r.Method == http.MethodConnect && status <= 299: // which would open a tunnel
		return &culvert.Error{Kind: culvert.Internal, BytesSent: true, Err: fmt.Errorf("a response of status %d was given the status %d", received, status)}
	case hasContent(received) && hasContent(status):
		return nil
	}
	delete(resp.Header, "Content-Length")
	resp.Body.Close()
	resp.Body, resp.ContentLength, resp.Trailer = http.NoBody, 0, nil
	return nil
}

// hasContent reports whether a response of the status may have content.
func hasContent(status int) bool {
	switch status {
	case http.StatusNoContent, http.StatusResetContent, http.StatusNotModified:
		return false
	}
	return status >= 200
}
