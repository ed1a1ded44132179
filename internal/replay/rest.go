package replay

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

// wantRest is called when an attempt begins to read, or continues, before its response. The caller holds the body's mu, as
// that of abandonRest and dropRest does.
func (a *Attempt) wantRest() {
	if a.state != ended && a.body.rest == restUnwanted {
		a.body.rest = restWanted
	}
}

// Abandon is called when the attempt's target reads no more of the body.
func (a *Attempt) Abandon() {
	a.body.mu.Lock()
	defer a.body.mu.Unlock()
	a.abandonRest()
}

func (a *Attempt) abandonRest() {
	switch b := a.body; {
	case a.state == ended:
	case b.rest == restWanted:
		b.rest = restUnwanted
	case b.rest == restRelaying:
		b.dropRest()
	}
}

// ResponseBegun is called when the response's header has been written: from then on net/http sends no 100.
func (a *Attempt) ResponseBegun() {
	b := a.body
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.rest {
	case restWanted:
		b.rest = restRelaying
	case restUnwanted:
		b.dropRest()
	}
}

func (b *Body) dropRest() {
	b.rest = restDropped
	if b.client.Unwatched() {
		go b.watchClient()
	}
}

// watchClient reads until the body ends, the client leaves, or the handler returns.
func (b *Body) watchClient() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.awaitReader() // an attempt that has ended may still wait for the client
	b.startReading()
	defer b.stopReading()
	b.client.Unbound()
	var err error
	defer b.Catch(&err)
	for buf := make([]byte, 1<<10); err == nil; {
		_, err = b.client.Read(buf)
	}
}
