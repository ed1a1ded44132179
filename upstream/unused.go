package upstream

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/fault"
)

// passUnused sends a request over another connection of HTTP/2 where the one that next has taken for it had ended before it carried
// any request, if next may speak HTTP/2. net/http's transport keeps such a connection for five seconds, so that the failure of a
// target that ends each connection is seen, and for ever where the request that would have found it out was canceled just then. It
// says nothing about its target by the time that a request takes it, and nothing of that request was sent.
func passUnused(next http.RoundTripper, o Options) http.RoundTripper {
	if o.Protocol == HTTP1 {
		return next
	}
	return &unusedPasser{next}
}

type unusedPasser struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper. The first failure is always followed by another attempt, further ones where the connection
// is older than the exchange: there are only so many of them, and each fails once.
func (u *unusedPasser) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := u.RoundTripper.RoundTrip(r)
	for again := true; again && fault.EndedUnused(err); {
		if r = reopened(r); r == nil {
			return nil, err
		}
		again = false
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			c := ownConn(info.Conn)
			again = c != nil && c.born.Before(start)
		}}
		resp, err = u.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	}
	return resp, err
}

// reopened returns r with a body that can be sent from its beginning; nil where there is none to be had.
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

// ownConn returns the group's own connection below of, nil if there is none.
func ownConn(of net.Conn) *conn {
	if t, ok := of.(interface{ NetConn() net.Conn }); ok { // TLS
		of = t.NetConn()
	}
	c, _ := of.(*conn)
	return c
}
