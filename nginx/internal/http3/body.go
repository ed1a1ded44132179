package http3

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"time"
)

// bodiless are the methods of requests that rarely have a body. HTTP/3 shows by the end of the stream that there is none.
var bodiless = []string{http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions, http.MethodTrace}

// endWait is how long the end of such a request is waited for, which mostly has come with its header.
var endWait = 100 * time.Millisecond

// settleLength sets the length of a request that says none to 0 where nothing follows its header.
func settleLength(r *http.Request) {
	if r.ContentLength >= 0 || !slices.Contains(bodiless, r.Method) {
		return
	}
	b := &peeked{ReadCloser: r.Body, done: make(chan struct{})}
	go b.peek() // which ends at the latest with the handler: quic-go ends reads then
	late := time.NewTimer(endWait)
	defer late.Stop()
	select {
	case <-b.done:
		if b.n == 0 && errors.Is(b.err, io.EOF) {
			r.ContentLength, r.Body = 0, http.NoBody
			return
		}
	case <-late.C:
	}
	r.Body = b
}

// peeked is a body of which the first byte is read in advance. A deadline could end a read inside a frame's header, so there is
// none.
type peeked struct {
	io.ReadCloser
	done  chan struct{} // closed when what follows is set
	first [1]byte
	n     int // 1: first has not been read
	err   error
}

func (b *peeked) peek() {
	defer close(b.done)
	b.n, b.err = io.ReadFull(b.ReadCloser, b.first[:])
}

// Read implements io.Reader.
func (b *peeked) Read(p []byte) (int, error) {
	<-b.done
	switch {
	case len(p) == 0:
		return 0, nil
	case b.n > 0:
		p[0], b.n = b.first[0], 0
		return 1, nil
	case b.err != nil:
		return 0, b.err
	}
	return b.ReadCloser.Read(p)
}

// keepTrailers has the trailers that r announces set in its map, as net/http does, so that copies of r have them, too: quic-go
// gives r another map.
func keepTrailers(r *http.Request) {
	if len(r.Trailer) > 0 && r.Body != http.NoBody {
		r.Body = &trailed{r.Body, r, r.Trailer}
	}
}

// trailed is a body behind which trailers may come.
type trailed struct {
	io.ReadCloser
	request   *http.Request // quic-go's
	announced http.Header
}

// Read implements io.Reader. At the end the trailers are set.
func (b *trailed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		for name := range b.announced {
			if values := b.request.Trailer[name]; len(values) > 0 {
				b.announced[name] = values
			}
		}
	}
	return n, err
}
