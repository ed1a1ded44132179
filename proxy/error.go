package proxy

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/localerror"
	"github.com/culvert-go/culvert/internal/replay"
	"github.com/culvert-go/culvert/wsupgrade"
)

// failed is an exchange that has failed.
type failed struct {
	err  *culvert.Error // nil: it has not
	left unread
	body io.ReadCloser // of the request, for Options.ErrorHandler; nil: nothing has read its own
}

// fail reports the failure and ends the response.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, end failed) {
	left, err := end.left, end.err
	if again, ok := end.body.(*replay.Again); ok {
		defer again.Close()
	}
	if err.Kind == culvert.BodyTooSlow { // also where wsupgrade has read it
		left = max(left, brokenUnread)
	}
	p.report(w, r, left, err)
	left.leave(w, r, err)
	bounded := deadline.Bound(w, r, p.o.WriteTimeout)
	if end.body != nil {
		r = r.WithContext(r.Context())
		r.Body = end.body
	}
	p.o.ErrorHandler(bounded.Writer(), r, err)
	bounded.LeaveWritten()
}

// report calls OnError, and aborts the response where nothing more can be sent.
func (p *Proxy) report(w http.ResponseWriter, r *http.Request, left unread, err *culvert.Error) {
	returned := err.HeaderSent // which is cut off
	if left == restUnread {    // not cut off yet
		defer clientbody.LeavePanicked(w, r, &returned)
	}
	if p.o.OnError != nil {
		p.o.OnError(r, err)
	}
	if err.HeaderSent {
		clientside.Abort(w, r)
	}
	if err.HeaderSent || err.Kind == culvert.ClientGone {
		panic(http.ErrAbortHandler)
	}
	returned = true
}

// writeError is the default ErrorHandler.
func writeError(w http.ResponseWriter, r *http.Request, err *culvert.Error) {
	if localerror.IsGRPC(r) {
		localerror.WriteError(w, r, err)
		return
	}
	wsupgrade.Refuse(w, err)
}
