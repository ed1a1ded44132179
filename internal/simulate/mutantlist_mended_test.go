package simulate

func init() { mutants = append(mutants, mutantsOfMended...) }

// mutantsOfMended are faults that were mended when the gateway was used from outside.
var mutantsOfMended = []mutant{
	{"a retried upgrade has lost its body", "wsupgrade/body.go", "	in.Body = clientbody.Whole{", "	_ = clientbody.Whole{"},
	{"a registered upgrade's body is kept for no other attempt", "wsupgrade/forward.go", "	in.Body = bounded.Body // what", "	// what"},
	{"a target is blamed for a request that can't be written", "proxy/sendable.go", "	return &culvert.Error{Kind: culvert.Internal, Err: err}\n", "	return &culvert.Error{Kind: culvert.HeaderInvalid, BytesSent: true, Err: err}\n"},
	{"a tunnel's life is the time to its header", "proxy/forward.go", "	if !result.detached {\n", "	if result.status == http.StatusSwitchingProtocols {\n		outcome.TimeToHeader = time.Since(f.started)\n	}\n	if !result.detached {\n"},
	{"a detached tunnel is late", "proxy/upgrade.go", "Header: *waited}", "Header: *waited + 1<<40}"},
	{"a transform that fails at its end is not recorded", "internal/response/writer.go", "		w.recordFailure(err)\n", ""},
	{"a transform's failure is the client's", "internal/relay/relay.go", "		e.Kind = culvert.Internal\n", "		e.Kind = culvert.ClientGone\n"},
	{"attempts share the map of trailers", "internal/replay/trailers.go", "	out.Trailer = make(http.Header)\n", "	out.Trailer = a.body.in.Trailer\n"},
	{"the map of an interim response is shared", "internal/clientside/calls.go", "		h[\"Content-Length\"] = noLength\n", "		_ = noLength\n"},
	{"a client that reads nothing holds Close up", "wsupgrade/shut.go", "	if t.stream { //", "	if false { //"},
	{"a target gets a request again whose stream it has reset", "proxy/exchange.go", "c.counts.stale() && !streamReset(err)\n", "c.counts.stale()\n"},
	{"a response does not wait for interim ones", "proxy/interimqueue.go", "	if running != nil {\n		<-running\n	}\n", "	_ = running\n"},
	{"interim responses that wait are lost", "proxy/exchange.go", "finish(err == nil && !result.dropped)", "finish(false)"},
	{"a HEAD over HTTP/2 waits for the end of its stream for ever", "upstream/transport.go", "run: boundHead(passUnused(limitConns(t, o), o), o)", "run: passUnused(limitConns(t, o), o)"},
	{"an attempt writes into the header of the one before", "proxy/sendable.go", "		if out.Header[name] != nil { // or another attempt may still read the map\n", "		if true {\n"},
	{"an inner Recover takes the panic of a filter around for its handler's", "filters/recover.go", "{ around = true }", "{ _ = around }"},
	{"a dropped response's attempt waits for its client's next bytes", "proxy/beside.go", "	if !b.source.Client().Ended() {\n", "	if false {\n"},
	{"an attempt that is left keeps its stream until its client's next bytes", "internal/replay/leave.go", "	case !a.body.Replayable():\n", "	case true:\n"},
	{"what a filter waits for is its client's time", "internal/relay/client.go", "	c.writes.PassOn()\n", ""},
	{"net/http's transport waits for the first byte of a body", "internal/replay/attempt.go", "	if out.ContentLength < 0 {\n", "	if false {\n"},
	{"a request without a target does not wait", "proxy/await.go", "err.Kind == culvert.NoTarget && f.await(ctx)", "false"},
	{"a request that was not sent does not wait", "proxy/forward.go", " || f.await(ctx)\n", "\n"},
	{"a hedged request is not ended", "proxy/hedge.go", "		h.firstWins(second, ended)\n", "		h.f.second = upstream.Lease{}\n"},
	{"a hedged POST", "proxy/hedge.go", " && repeatsOf(f.out.Out) == repeatsSafe", ""},
	{"a request on trial is hedged", "proxy/hedge.go", " && !f.lease.OnTrial()", ""},
	{"a hedged request is taken for another", "proxy/hedge.go", "	_ = forTransport(h.f.out.In, sent) // it has permitted the first\n", ""},
	{"a request waits for too long for a target", "proxy/await.go", "over := f.start.Add(bound)", "over := f.start.Add(2 * bound)"},
	{"an exchange by a lease's group runs by no scheme", "proxy/picked.go", "		u.Scheme = scheme\n", "		_ = scheme\n"},
	{"a target that leaves gets requests that do not want it", "upstream/member.go", "!m.Draining && (", "("},
	{"a header waits for a body that is to be streamed", "proxy/http1.go", "	if e.o.StreamRequest && !c.body.Received() {\n", "	if false {\n"},
	{"names of a request's fields are spelt anew", "proxy/http1.go", "	x.Names, x.KeepNames = f.outbound.FieldNames, f.p.o.KeepFieldNames\n", "	x.KeepNames = f.p.o.KeepFieldNames\n"},
	{"names of a response's fields are spelt anew", "internal/relay/relay.go", "		clientside.FormatHeader(w, *o.Format)\n", "		_ = clientside.FormatHeader\n"},
	{"names of a failed response's fields come with its status", "server/named.go", "err != nil || n != w.status {\n", "err != nil || n < 0 {\n"},
}

// raced are the mutants that are built with -race, since nothing else shows them on one processor.
var raced = map[string]bool{
	"the map of an interim response is shared":            true,
	"an attempt writes into the header of the one before": true,
}
