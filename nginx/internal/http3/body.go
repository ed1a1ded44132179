package http3

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"
)

// bodiless are the methods of requests that rarely have a body. HTTP/3 shows by the end of the stream that there is none.
var bodiless = []string{http.MethodGet, http.MethodHead, http.MethodDelete, http.MethodOptions, http.MethodTrace}

// settleLength sets the length of a request that says none to 0 where nothing follows its header. Others may wait for a
// response before they send. It reports false if the client has sent neither a body nor its end in time.
func (c *conn) settleLength(w http.ResponseWriter, r *http.Request) bool {
	if r.ContentLength >= 0 || !slices.Contains(bodiless, r.Method) {
		return true
	}
	control := http.NewResponseController(w)
	if t := c.server.settings.HandshakeTimeout; t > 0 {
		_ = control.SetReadDeadline(time.Now().Add(t))
	}
	var first [1]byte
	n, err := io.ReadFull(r.Body, first[:])
	switch {
	case n > 0:
		r.Body = prefixed{io.MultiReader(bytes.NewReader(first[:]), r.Body), r.Body}
	case errors.Is(err, io.EOF):
		r.ContentLength, r.Body = 0, http.NoBody
	default:
		panic(http.ErrAbortHandler)
	}
	return control.SetReadDeadline(time.Time{}) == nil
}

// prefixed is a body of which the beginning was read.
type prefixed struct {
	io.Reader
	io.Closer
}
