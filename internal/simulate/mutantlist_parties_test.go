package simulate

func init() { mutants = append(mutants, mutantsOfParties...) }

// mutantsOfParties are faults that malformed requests, clients of HTTP/2 by frames and odd targets find.
var mutantsOfParties = []mutant{
	{"a 2xx opens a tunnel that no target has opened", "wsupgrade/forward.go", "stream && resp.StatusCode >= 200 &&", "stream && resp.StatusCode >= 900 &&"},
	{"an error response has no deadline", "proxy/error.go", "deadline.Bound(w, r, p.o.WriteTimeout)", "deadline.Bound(w, r, 0)"},
	{"the bound of a body is that of a tunnel", "filters/bodylimit.go", " && r.Method != http.MethodConnect", ""},
	{"a 101 that was not requested is passed on", "internal/http1/receive.go", "	if c.received.status < 200 || c.received.status > 999 {", "	if c.received.status < 100 || c.received.status > 999 {"},
	{"half a body in zstd is a whole one", "filters/decompress.go", "	return n, d.cause(err)\n", "	return n, err\n"},
	{"a length over HTTP/2 is not compared with the content", "proxy/length.go", "	if in.ProtoMajor < 2 {\n", "	if in.ProtoMajor < 20 {\n"},
	{"lengths that differ are accepted", "internal/http1/framing.go", "		if line != lines[0] {", "		if line == \"\" {"},
	{"a panic of DialContext is a refused dial", "internal/http1/pool.go", "		panic(v)\n", "		_ = v\n		return nil, net.ErrClosed\n"},
	{"a panic of DialContext is an error of http.Transport's", "upstream/panicked.go", "			panic(p.Value)\n", "			return resp, err\n"},
	{"a target is blamed for a panic of DialContext", "proxy/picked.go", "var unused = upstream.Outcome{Err: &culvert.Error{Kind: culvert.ClientGone}}", "var unused = upstream.Outcome{Err: &culvert.Error{Kind: culvert.DialFailed}}"},
	{"a panic of DialContext keeps its lease", "proxy/forward.go", "			lease.Done(unused)\n", ""},
	{"content behind a length of 0 over HTTP/2 is not awaited", "internal/clientbody/whole.go", "	return r.ProtoMajor >= 2 && r.ContentLength == 0", "	return r.ProtoMajor >= 20 && r.ContentLength == 0"},
	{"the list of a resumed watch waits for a place", "upstream/queue.go", "		return ready\n", "		return nil\n"},
	{"requests wait for a stream of the connection that there is", "upstream/transport.go", "HTTP2: &http.HTTP2Config{SendPingTimeout", "HTTP2: &http.HTTP2Config{StrictMaxConcurrentRequests: true, SendPingTimeout"},
	{"Group.Set leaves the places as they were", "upstream/targets.go", "		s.members = append(s.members, m)\n", "		if old := m.current.Load(); old != nil && old.MaxConns > 0 {\n			m.MaxConns = old.MaxConns\n		}\n		s.members = append(s.members, m)\n"},
	{"the places of the first target are those of all", "upstream/targets.go", "		addr := addrOf(t.Addr)\n", "		addr := addrOf(t.Addr)\n		t.MaxConns = list[0].MaxConns\n"},
	{"a budget earns nothing by requests", "proxy/retrybudget.go", "b.tokens+b.ratio, max(", "b.tokens, max("},
	{"a budget earns nothing by time", "proxy/retrybudget.go", "b.tokens = min(b.tokens+brought, most)", "_ = brought"},
	{"what could not be dialled is not retried", "proxy/retry.go", "return err.Kind == culvert.DialFailed || ", "return "},
	{"a panic of Check.Healthy is a bad check", "upstream/check.go", "!ownFault(err) && !errors.As(err, new(*panics.Error))", "!ownFault(err)"},
	{"a BalanceFunc's choice is not looked at again", "upstream/balancefunc.go", "\t\tif q.acquire(m) {\n\t\t\treturn m\n\t\t}\n", "\t\tm.inFlight.Add(1)\n\t\tif m != nil {\n\t\t\treturn m\n\t\t}\n"},
	{"a changed status is not sent", "proxy/modifyresponse.go", "\tresp.StatusCode = a.Status\n", ""},
	{"ModifyResponse is not called for a 101", "wsupgrade/modify.go", "\tif modify == nil {\n", "\tif modify == nil || modify != nil {\n"},
	{"a 101 loses what its ends have agreed by", "wsupgrade/modify.go", "\t\tmaps.Copy(resp.Header, handshake)\n", ""},
	{"a panic of ModifyResponse is ignored", "proxy/modifyresponse.go", "\tf.p.o.ModifyResponse(&a)\n", "\tfunc() {\n\t\tdefer func() { _ = recover() }()\n\t\tf.p.o.ModifyResponse(&a)\n\t}()\n"},
	{"a panic is an abort to Recover", "filters/recover.go", "if v == http.ErrAbortHandler || around {", "if v != nil || around {"},
	{"a 101 over HTTP/2 is an interim response", "proxy/transportresponse.go", "	if status == http.StatusSwitchingProtocols {", "	if status == http.StatusSwitchingProtocols && status == 0 {"},
	{"a response over HTTP/2 that is longer than its length looks whole", "proxy/transportresponse.go", "	if b.left == 0 && b.err != io.EOF {", "	if b.left < 0 {"},
	{"an attempt has the fields of those before", "proxy/onattempt.go", "f.unobserved.Clone()", "f.unobserved"},
	{"an attempt that panics is not observed", "proxy/forward.go", "		f.observed(f.ended)\n", "		if returned {\n			f.observed(f.ended)\n		}\n"},
}
