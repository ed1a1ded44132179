package proxy

import (
	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/errs"
)

// hookFailure returns the failure of an exchange that a hook has ended with err. No target is to blame. sent says that a target
// has got the request.
func hookFailure(err error, sent bool) *culvert.Error {
	e := &culvert.Error{Kind: culvert.Internal, BytesSent: sent, Err: err}
	own := errs.As(err)
	if own == nil || own.Kind == culvert.ClientGone {
		return e
	}
	if error(own) == err {
		e.Err = own.Err
	}
	if own.ClientSide() || own.Kind == culvert.NoTarget || own.Kind == culvert.Busy {
		e.Kind, e.RetryAfter = own.Kind, own.RetryAfter
	}
	return e
}
