package server

import (
	"bufio"
	"net"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/clientside"
)

// Hijack implements http.Hijacker. The reader holds what was received behind the request's header, so that of a body too, unless
// the response had begun or the body was closed: what remains of it may have been read ahead then.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.left:
		return nil, nil, clientside.ErrEnded
	case w.hijacked:
		return nil, nil, http.ErrHijacked
	}
	w.mayContinue.Store(false)
	if w.frozen {
		w.flush()
	}
	c := w.x.c
	c.hook(http.StateHijacked)
	w.hijacked = true
	c.mu.Lock()
	c.hijacked = true // no watch starts from now on
	c.mu.Unlock()
	c.stopWatching()
	c.mu.Lock()
	hasByte := c.watch.hasByte
	c.mu.Unlock()
	_ = c.rwc.SetDeadline(time.Time{})
	if hasByte {
		_, _ = c.r.Peek(c.r.Buffered() + 1)
	}
	w.out.free()
	c.server.forget(c)
	return c.rwc, bufio.NewReadWriter(c.r, bufio.NewWriter(c.rwc)), nil
}
