package simulate

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// serveFrames serves a connection of HTTP/2 by frames. The plan decides on windows, settings and ends of streams.
func (t *target) serveFrames(c *Conn) {
	_ = c.SetReadDeadline(time.Now().Add(2 * t.world.longest)) // a link may be silent
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil || string(preface) != http2.ClientPreface {
		return // an upgrade, which is HTTP/1.1
	}
	p := &t.plan.Frames
	f := makeFrameConn(t.world, t.plan.Addr, p, c)
	opened := time.Now()
	f.accept = func(s *frameStream, frame *http2.MetaHeadersFrame) {
		seen := Sight{Opened: opened, Kept: s.id > 1}
		req, beyond := s.request(frame), f.beyond()
		t.streams.Go(func() { t.serveFrameStream(s, req, seen, beyond) })
		if p.GoAway > 0 && s.id == uint32(2*p.GoAway-1) {
			t.world.journal.manners.Add("target: GOAWAY behind a request", 1)
			f.goAwayBehind(s.id, http2.ErrCodeNo)
		}
	}
	settings := []http2.Setting{{ID: http2.SettingHeaderTableSize, Val: p.Table}}
	if p.Streams > 0 {
		settings = append(settings, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: p.Streams})
	}
	f.start(settings...)
	t.streams.Go(func() { f.changeSettings(f.read) })
	t.streams.Go(func() { f.ping(f.read) })
	<-f.read
}

// request returns the request of a header section.
func (s *frameStream) request(frame *http2.MetaHeadersFrame) *http.Request {
	req := &http.Request{Method: frame.PseudoValue("method"), RequestURI: frame.PseudoValue("path"), Header: http.Header{}, Body: io.NopCloser(s)}
	for _, field := range frame.RegularFields() {
		req.Header.Add(field.Name, field.Value)
		if hopByHop(field) {
			s.conn.world.journal.Break("hop by hop", "%s: the request on stream %d has %v", s.conn.name, s.id, field)
		}
	}
	return req
}

// goAwayBehind sends a GOAWAY: streams after last are not processed. The connection ends a while after all others have
// ended. The caller holds f.mu.
func (f *frameConn) goAwayBehind(last uint32, code http2.ErrCode) {
	f.refused, f.last = true, last
	_ = f.framer.WriteGoAway(last, code, nil)
	time.AfterFunc(time.Second+offGrid, f.closeWhenDone)
}

// closeWhenDone closes a connection that accepts no more streams.
func (f *frameConn) closeWhenDone() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, s := range f.streams {
		if id <= f.last && !s.gone && s.err == nil && !(s.ended && s.sentEnd) && f.err == nil {
			time.AfterFunc(time.Second+offGrid, f.closeWhenDone)
			return
		}
	}
	f.conn.Close()
}

// serveFrameStream serves one request.
func (t *target) serveFrameStream(s *frameStream, req *http.Request, seen Sight, beyond bool) {
	if !t.based(req) {
		return
	}
	token, ok := tokenOf(req.RequestURI)
	plan := t.world.exchanges[token]
	switch {
	case ok && token == 0:
		t.noteHalf(req)
		if req.Header.Get(checkField) == "" || !t.silent(s.closed) {
			s.sendHeader([]hpack.HeaderField{{Name: ":status", Value: strconv.Itoa(t.checkStatus(req))}}, true)
		}
		return
	case plan == nil:
		t.world.journal.Break("request", "%s got a request for %q", t.plan.Addr, req.RequestURI)
		return
	}
	seen.Target, seen.At, seen.Line, seen.Header = t.plan.Addr, time.Now(), req.Method+" "+req.RequestURI, req.Header
	sight := &seen
	t.world.journal.sight(token, sight)
	t.note(token, "attempt %d on stream %d: %s", sight.Attempt, s.id, sight.Line)
	defer func() { sight.Ended = time.Now() }()
	if t.refuseBeyond(s, req, sight, beyond) {
		return
	}
	r := plan.response(sight.Attempt)
	bodyless := req.Method == http.MethodHead || r.Status == 204 || r.Status == 304
	o := &oddStream{t: t, s: s, plan: plan, r: r, sight: sight}
	if r.OddFrames > 0 && (!bodyless || frameOddities[r.OddFrames-1].always) {
		o.odd = &frameOddities[r.OddFrames-1]
		sight.Odd = &o.odd.oddity
		t.world.journal.manners.Add("target: "+o.odd.name, 1)
	}
	read := func() {
		t.readBody(req, plan, sight)
		s.conn.mu.Lock()
		sight.Trailer = s.trailer
		if at := s.endedAt; !at.IsZero() && at.Before(sight.ReadEnd) { // it reads late if it opens its window late
			sight.ReadEnd = at
		}
		s.conn.mu.Unlock()
	}
	body := make(chan struct{})
	switch {
	case o.odd != nil && o.odd.unprocessed:
		o.odd.act(o)
		return
	case r.Early:
		t.streams.Go(func() { defer close(body); read() })
	default:
		read()
		close(body)
	}
	t.respondFrames(o, bodyless)
	if r.Early && r.Close && sight.Responded { // refuses the rest of the body (RFC 9113 section 8.1)
		s.conn.mu.Lock()
		sight.NoError = !s.ended && s.err == nil
		s.conn.mu.Unlock()
		s.resetWith(http2.ErrCodeNo)
	}
	<-body
}

// respondFrames is writeResponse over frames.
func (t *target) respondFrames(o *oddStream, bodyless bool) {
	r, s := o.r, o.s
	for range r.Interim {
		o.sight.Wrote = true
		s.sendHeader([]hpack.HeaderField{{Name: ":status", Value: "103"}, {Name: "link", Value: "</" + strconv.Itoa(int(o.plan.Token)) + ">"}}, false)
	}
	t.world.sleep(r.Delay)
	if r.Never {
		select {
		case <-t.world.ended:
		case <-s.Closed():
		}
	}
	if r.Never || r.Garbage {
		t.world.journal.faults.Add("no response", 1)
		if o.sight.Reset = s.resetWith(http2.ErrCodeInternal) && r.Garbage; o.sight.Reset {
			o.sight.reset = s.conn.conn.(*Conn).lastWord()
		}
		return
	}
	o.sight.Wrote = true
	if o.odd != nil {
		o.odd.act(o)
		t.note(o.plan.Token, "responded with %s", o.odd.name)
		o.sight.Responded = o.odd.fate == tolerated
		return
	}
	content := r.wire(o.plan, o.sight.Attempt)
	end := bodyless || content.Size() == 0 && len(r.Trailer) == 0
	s.sendHeader(o.fields(bodyless), end && !r.Apart)
	if end && r.Apart {
		if r.EndPause > 0 {
			t.world.journal.faults.Add("a late end of a stream", 1)
			t.world.sleep(r.EndPause)
		}
		if s.end(nil) != nil {
			return
		}
	}
	if !end {
		how := r.Body
		if how.How == FaultFIN && r.Framing != ByLength {
			how.How = FaultReset // without a length, a clean end would be that of a whole body
		}
		if err := t.world.sendBody(s, &how, content, false); err != nil {
			o.sight.BrokeOff = true
			t.note(o.plan.Token, "body broke off: %v", err)
			s.Close()
			return
		}
		trailer := r.Trailer
		if r.Forget {
			trailer = nil
		}
		if s.end(trailer) != nil {
			return
		}
	}
	o.sight.Responded = true
	t.note(o.plan.Token, "responded %d with %d bytes", r.Status, r.Body.Length)
}

// fields returns the header section of the plan's response.
func (o *oddStream) fields(bodyless bool) []hpack.HeaderField {
	r := o.r
	list := []hpack.HeaderField{{Name: ":status", Value: strconv.Itoa(r.Status)}, {Name: "x-token", Value: strconv.Itoa(int(o.plan.Token))},
		{Name: "x-attempt", Value: strconv.Itoa(o.sight.Attempt)}}
	add := func(name, value string) {
		list = append(list, hpack.HeaderField{Name: strings.ToLower(name), Value: value})
	}
	for i, f := range o.plan.Header {
		add("X-Back-"+strconv.Itoa(i), f[1])
	}
	for _, f := range r.fields() {
		add(f[0], f[1])
	}
	for _, f := range r.Trailer {
		if !bodyless {
			add("Trailer", f[0])
		}
	}
	if r.Framing == ByLength && r.Status != 204 && o.odd == nil {
		add("Content-Length", strconv.FormatInt(r.wire(o.plan, o.sight.Attempt).Size(), 10))
	}
	return list
}

// sendHeader sends a header section.
func (s *frameStream) sendHeader(fields []hpack.HeaderField, end bool) {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	if s.gone || s.err != nil {
		return
	}
	s.sentEnd = s.sentEnd || end
	s.conn.writeHeader(s.id, fields, end)
}
