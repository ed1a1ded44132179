package proxy

import (
	"net/url"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/upstream"
)

// observe calls Options.OnAttempt, if it is set, before an attempt with lease, and returns what it returns. The fields that
// it sets are those of this attempt alone.
func (f *forwarding) observe(lease upstream.Lease) (ended func(culvert.Attempt)) {
	if f.p.o.OnAttempt == nil {
		return nil
	}
	if f.unobserved == nil {
		f.unobserved = f.out.Out.Header
	}
	seen, fields := *f.out.Out, f.unobserved.Clone()
	seen.Header, seen.URL, seen.Body, seen.GetBody = fields, f.urlOf(lease), nil, nil
	ended = f.p.o.OnAttempt(&seen, lease.Addr())
	header.RemoveMisspelt(fields)
	nameAgent(fields)
	f.out.Out = f.out.Out.WithContext(f.out.Out.Context()) // attempts before may still be read
	f.out.Out.Header = fields
	return ended
}

// urlOf returns the URL of an attempt with lease as a program expects it: its path, that of the target before it, is in Path and
// RawPath, and not in Opaque, of which String would make "http:/path".
func (f *forwarding) urlOf(lease upstream.Lease) *url.URL {
	u := *f.out.Out.URL
	f.direct(&u, lease)
	if path, err := url.PathUnescape(u.Opaque); err == nil {
		u.Path, u.RawPath, u.Opaque = path, u.Opaque, ""
	}
	return &u
}

// observed calls ended, if it is not nil, with the record of the attempt, which has ended.
func (f *forwarding) observed(ended func(culvert.Attempt)) {
	if ended != nil {
		ended(f.record.Ended())
	}
}
