package upstream

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/errs"
)

// passUnused returns a RoundTripper that sends a request again, over another connection of HTTP/2, if
// the one that next has chosen had ended before it carried any request. It returns next if that does
// not speak HTTP/2.
//
// net/http's transport keeps such a connection for five seconds, so that requests to a target that ends
// each connection fail, and for ever if the request that would have found the failure was canceled just
// then. When a request is sent over it, its failure is old and does not show that its target fails now,
// and nothing of the request was sent.
func passUnused(next http.RoundTripper, o Options) http.RoundTripper {
	if o.Protocol == HTTP1 {
		return next
	}
	return &unusedPasser{next}
}

type unusedPasser struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper. It always makes a second attempt after the first failure. It
// makes further ones only after the failure of a connection that is older than the exchange: their
// number is limited, and each fails once.
func (u *unusedPasser) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := u.RoundTripper.RoundTrip(r)
	for again := true; again && errs.EndedUnused(err); {
		if r = reopened(r); r == nil {
			return nil, err
		}
		again = false
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			c := ownConn(info.Conn)
			again = c != nil && c.created.Before(start)
		}}
		resp, err = u.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	}
	return resp, err
}

// reopened returns r with its body at the beginning; nil if the body can't be sent again.
func reopened(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	if body, ok := r.Body.(clientbody.Reopener); ok && body.Reopen() {
		return r
	}
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	again := *r
	again.Body = body
	return &again
}

// ownConn returns the *conn that of is, or that is below its TLS, nil if there is none.
func ownConn(of net.Conn) *conn {
	if t, ok := of.(interface{ NetConn() net.Conn }); ok { // TLS
		of = t.NetConn()
	}
	c, _ := of.(*conn)
	return c
}
