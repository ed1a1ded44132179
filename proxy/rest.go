package proxy

// rest is what becomes of a body's rest, by what the target of the last attempt has said. Over HTTP/1 nothing but a
// read notices a client that leaves: net/http reads by itself only behind the body's end. So when the target reads
// no more and its response is relayed, the rest is read and dropped.
type rest int

const (
	restWanted   rest = iota // the target reads it
	restUnwanted             // the target reads no more; its response may still come
	restRelaying             // the response is relayed while the target reads on
	restDropped              // the response is relayed, and watchClient reads
)

// want is called when an attempt begins to read, or goes on, before its response.
func (b *requestBody) want() {
	b.source.turn.Lock()
	defer b.source.turn.Unlock()
	if !b.ended.Load() && b.source.rest == restUnwanted {
		b.source.rest = restWanted
	}
}

// abandon is called when the attempt's target reads no more of the body.
func (b *requestBody) abandon() {
	s := b.source
	s.turn.Lock()
	defer s.turn.Unlock()
	switch {
	case b.ended.Load():
	case s.rest == restWanted:
		s.rest = restUnwanted
	case s.rest == restRelaying:
		s.dropRest()
	}
}

// responseBegun is called when the response's header has been written: from then on net/http asks no client for its
// body.
func (b *requestBody) responseBegun() {
	s := b.source
	s.turn.Lock()
	defer s.turn.Unlock()
	switch s.rest {
	case restWanted:
		s.rest = restRelaying
	case restUnwanted:
		s.dropRest()
	}
}

func (s *bodySource) dropRest() {
	s.rest = restDropped
	if s.client.Unwatched() {
		go s.watchClient()
	}
}

// watchClient reads until the body ends, the client leaves, or the handler returns.
func (s *bodySource) watchClient() {
	s.lock.Lock() // an attempt that has ended may still wait for the client
	defer s.lock.Unlock()
	s.client.Unbound()
	var err error
	defer s.catch(&err)
	for buf := make([]byte, 1<<10); ; {
		if _, err = s.client.Read(buf); err != nil {
			return
		}
	}
}
