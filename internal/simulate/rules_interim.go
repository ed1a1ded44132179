package simulate

// interims: a client that sees a target's response sees each interim response that preceded it. Excepted are clients of HTTP/1.0
// (RFC 9110 section 15.2), and responses of Kubernetes that a filter holds: such servers send no interim responses. net/http's
// client does not count them, and a client that expects a 100 may miss others.
func (r *ruler) interims() {
	o := r.o
	switch {
	case r.client.Kind == HTTP10 && o.Interim > 0:
		r.fail("interim", "a client of HTTP/1.0 saw %d interim responses", o.Interim)
	case r.e.Kube != KubeNothing && r.w.plan.has("watchcodec"):
	case r.w.plan.Gateway.Hedge > 0 && r.safe(): // the response may be a second target's
	case o.Attempt < 0, r.client.Kind != HTTP1 && r.client.Kind != Frames, r.e.Expect, r.e.response(o.Attempt).Odd > 0:
	case o.Interim < r.e.response(o.Attempt).Interim:
		r.fail("interim", "the client saw %d interim responses, its target has sent %d", o.Interim, r.e.response(o.Attempt).Interim)
	}
}
