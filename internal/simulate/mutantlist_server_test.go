package simulate

func init() { mutants = append(mutants, mutantsOfServer...) }

// mutantsOfServer are faults of package server.
var mutantsOfServer = []mutant{
	{"server: an idle connection has no bound", "server/idle.go", "	} else if d > 0 {\n", "	} else if d < 0 {\n"},
	{"server: a parked connection loses what ends its wait", "server/idle.go", "	if why == netloop.Readable {\n", "	if why == netloop.Readable {\n		_ = c.rwc.SetReadDeadline(time.Time{})\n		_, _ = c.rwc.Read(c.watch.one[:])\n"},
	{"server: a parked connection has no bound", "server/idle.go", "		rest = d - c.tick\n", "		_, rest = d, 0\n"},
	{"server: a parked connection outlives Shutdown", "server/idle.go", "	if c.parked.Stop() {\n", "	if c.parked.Stop() && c.server == nil {\n"},
	{"server: the deadline of a response is the next one's", "server/conn.go", "	c.current, c.writes.until = x, writeUntil\n", "	c.current, _ = x, writeUntil\n"},
	{"server: the bound of a header is the next one's", "server/idle.go", "	c.reads.until, c.headerEnds = time.Time{}, time.Time{}\n", "	c.reads.until = time.Time{}\n"},
	{"server: what a handler has left of a body is the next request", "server/body.go", "	if b.content.Whole() {\n", "	if true {\n"},
	{"server: a rest that is awaited has no bound", "server/conn.go", "	c.boundReads(time.Now().Add(lingerWithin))\n", "	c.boundReads(time.Time{})\n"},
	{"server: a connection is closed with bytes unread", "server/conn.go", "		c.linger()\n	}\n}\n", "	}\n}\n"},
	{"server: the response of a panic looks whole", "server/conn.go", "			x.w.abort()\n", "			x.w.finish()\n"},
	{"server: a response of HTTP/1.0 that a panic cuts looks whole", "server/writer.go", "	if !w.committed || !w.untilEnd {\n", "	if true {\n"},
	{"server: a connection is kept behind a response that is too short", "server/writer.go", "		w.close = true\n		return false\n	}\n	w.send(nil, true)\n", "		return w.err == nil\n	}\n	w.send(nil, true)\n"},
	{"server: a chunk has no end", "server/output.go", "	if w.chunked && content > 0 {\n		tail =", "	if w.chunked && content < 0 {\n		tail ="},
	{"server: the last chunk is left out", "server/output.go", "	if w.chunked && last {\n", "	if w.chunked && last && content > 0 {\n"},
	{"server: trailers of a response are lost", "server/responseheader.go", "|| slices.Contains(w.set.trailers, name) {\n", "|| slices.Contains(w.set.trailers[:0], name) {\n"},
	{"server: a 100 follows the final header", "server/responseheader.go", "	w.mayContinue.Store(false)\n	w.status, w.frozen", "	w.status, w.frozen"},
	{"server: interim responses for HTTP/1.0", "server/writer.go", "		if w.http11 { // clients", "		if true { // clients"},
	{"server: a client that waits for a 100 gets none", "server/body.go", "		b.x.w.WriteContinue()\n", ""},
	{"server: the byte that the watch has read is lost", "server/conn.go", "		return copy(p, c.watch.one[:]), nil\n", "		return 0, nil\n"},
	{"server: the byte that the watch has read waits for others", "server/conn.go", "		return copy(p, c.watch.one[:]), nil\n", "		p[0] = c.watch.one[0]\n		n, err = c.rwc.Read(p[1:])\n		return n + 1, err\n"},
	{"server: pipelined requests are given back with the buffer", "server/conn.go", "		if c.r == nil || c.r.Buffered() == 0 && !c.watch.hasByte {\n", "		if true {\n"},
	{"server: the client's leaving is not noticed", "server/watch.go", "	if left {\n", "	if left && x == nil {\n"},
	{"server: the byte that the watch has read is lost to an upgrade", "server/hijack.go", "	if hasByte {\n", "	if hasByte && w.left {\n"},
	{"server: a response to HEAD has content", "server/responseheader.go", "	if w.head || !allowed {\n", "	if !allowed {\n"},
}

// overSockets are the mutants that run over real sockets, since connections are parked there alone.
var overSockets = map[string]bool{
	"server: a parked connection loses what ends its wait": true,
	"server: a parked connection has no bound":             true,
	"server: a parked connection outlives Shutdown":        true,
}
