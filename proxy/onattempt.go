package proxy

import (
	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
)

// observe calls Options.OnAttempt, if it is set, before an attempt on target, and returns what it returns. The fields that
// it sets are those of this attempt alone.
func (f *forwarding) observe(target string) (ended func(culvert.Attempt)) {
	if f.p.o.OnAttempt == nil {
		return nil
	}
	if f.unobserved == nil {
		f.unobserved = f.out.Out.Header
	}
	seen, url := *f.out.Out, *f.out.Out.URL
	fields := f.unobserved.Clone()
	seen.Header, seen.URL, seen.Body, seen.GetBody = fields, &url, nil, nil
	ended = f.p.o.OnAttempt(&seen, target)
	header.RemoveMisspelt(fields)
	nameAgent(fields)
	f.out.Out = f.out.Out.WithContext(f.out.Out.Context()) // attempts before may still be read
	f.out.Out.Header = fields
	return ended
}

// observed calls ended, if it is not nil, with the record of the attempt, which has ended.
func (f *forwarding) observed(ended func(culvert.Attempt)) {
	if ended != nil {
		ended(f.record.Ended())
	}
}
