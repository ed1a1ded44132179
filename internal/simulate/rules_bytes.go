package simulate

import (
	"fmt"
	"slices"
	"strings"
)

// request: targets see the request as it was sent, and half a request never looks whole.
func (r *ruler) request() {
	for _, s := range r.sights {
		if r.e.Broken {
			r.fail("bytes", "%s saw a request that can't be written", s.Target)
		}
		if want := r.w.passage(r.e, r.client.Kind).last.method + " " + r.e.target(); s.Line != want {
			r.fail("bytes", "%s saw %q, want %q", s.Target, s.Line, want)
		}
		if s.Bad != nil {
			r.fail("bytes", "%s read the request's body: %v", s.Target, s.Bad)
		}
		if !s.Whole || s.Upgrade {
			continue
		}
		if s.Got != r.e.Body.Length {
			r.fail("half request", "%s read %d bytes of %d as a whole body", s.Target, s.Got, r.e.Body.Length)
		}
		for _, f := range r.e.Trailer {
			want := r.w.plan.Gateway.Hooks.RequestTrailer.want(f)
			if got := s.Trailer.Values(f[0]); !slices.Equal(got, want) {
				r.fail("trailers", "%s saw %s: %q, want %q", s.Target, f[0], got, want)
			}
		}
	}
}

// fields: end-to-end fields arrive as they were sent, in both directions.
func (r *ruler) fields() {
	for _, s := range r.sights {
		for _, f := range r.e.Header {
			if f[0] == deletedField && r.w.plan.Gateway.Hooks.Rewrite {
				continue
			}
			if got := s.Header.Values(f[0]); !slices.Equal(got, []string{f[1]}) {
				r.fail("bytes", "%s saw %s: %q, want %q", s.Target, f[0], got, f[1])
			}
		}
		for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te"} {
			if v := s.Header.Get(name); v != "" && !(name == "Connection" && (strings.EqualFold(v, "upgrade") || v == "close")) {
				r.fail("hop by hop", "%s saw %s: %s", s.Target, name, v)
			}
		}
	}
	if r.o.Attempt < 0 || r.o.Header == nil || r.o.Tunnel != nil {
		return
	}
	for i, f := range r.e.Header {
		name := fmt.Sprintf("X-Back-%d", i)
		if got := r.o.Header.Values(name); !slices.Equal(got, []string{f[1]}) {
			r.fail("bytes", "the client saw %s: %q, want %q", name, got, f[1])
		}
	}
	r.responseTrailers()
}

// responseTrailers: trailers arrive as the target sent them, if the client can receive any.
func (r *ruler) responseTrailers() {
	plan := r.e.response(r.o.Attempt)
	if r.o.Attempt < len(r.sights) && r.sights[r.o.Attempt].Odd != nil {
		return // the response has no trailers of the plan
	}
	if !r.o.Whole || r.withoutContent(plan) || plan.Framing != Chunked && !r.w.plan.Gateway.H2Targets || r.client.Kind == HTTP10 || r.client.Kind.upgrades() {
		return
	}
	for _, f := range plan.Trailer {
		want := r.w.plan.Gateway.Hooks.ResponseTrailer.want(f)
		if plan.Forget || r.w.passage(r.e, r.client.Kind).response(r.o.Attempt).noTrail {
			want = nil
		}
		if got := r.o.Trailer.Values(f[0]); !slices.Equal(got, want) {
			r.fail("trailers", "the client saw %s: %q, want %q", f[0], got, want)
		}
	}
}
