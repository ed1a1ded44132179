package filtertest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/deadline"
)

// checkFlush: the client receives what was flushed while the handler runs, whether it flushes by
// http.Flusher or by http.ResponseController.
func checkFlush(f culvert.Filter, _ options) error {
	first, second := make(chan struct{}), make(chan struct{})
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first")
		flusher, ok := w.(http.Flusher)
		if !ok {
			s.failf("the ResponseWriter hides http.Flusher")
			return
		}
		flusher.Flush()
		if !await(first) {
			return
		}
		_, _ = io.WriteString(w, "second")
		s.check("flushing", http.NewResponseController(w).Flush())
		await(second)
	}
	return run(f, script, func(c *client) error {
		defer close(second)
		resp, err := c.roundTrip(get)
		if err == nil {
			err = want(resp.Body, "first")
		}
		close(first)
		if err != nil {
			return fmt.Errorf("while the handler waits after its flush: %w", err)
		}
		return want(resp.Body, "second")
	})
}

// checkFullDuplex: a response can begin before the request has ended.
func checkFullDuplex(f culvert.Filter, _ options) error {
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		s.check("full duplex", control.EnableFullDuplex())
		_, _ = io.WriteString(w, "begun ")
		s.check("flushing", control.Flush())
		_, err := io.Copy(w, r.Body)
		s.check("echoing", err)
	}
	return run(f, script, func(c *client) error {
		resp, err := c.roundTrip("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
		if err != nil {
			return err
		}
		if err := want(resp.Body, "begun "); err != nil {
			return err
		}
		if err := c.send("hello"); err != nil {
			return err
		}
		return want(resp.Body, "hello")
	})
}

// checkDeadlines: the deadlines of the connection can be set through
// http.ResponseController, and they work.
func checkDeadlines(f culvert.Filter, _ options) error {
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		s.check("write deadline", control.SetWriteDeadline(time.Now().Add(time.Hour)))
		if err := control.SetReadDeadline(deadline.Past); err != nil {
			s.failf("read deadline: %w", err)
			return
		}
		if _, err := io.ReadAll(r.Body); err == nil {
			s.failf("a read deadline in the past has no effect")
		}
	}
	return run(f, script, func(c *client) error {
		_, err := c.roundTrip("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe")
		return err
	})
}

// checkHijack: the connection can be hijacked by http.Hijacker and by
// http.ResponseController, and what the client has sent before is not lost.
func checkHijack(f culvert.Filter, _ options) error {
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(http.Hijacker); !ok {
			s.failf("the ResponseWriter hides http.Hijacker")
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			s.failf("hijacking: %w", err)
			return
		}
		defer conn.Close()
		s.check("early bytes", want(buffered, "early"))
		_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\ntunnel")
		s.check("writing", err)
		s.check("late bytes", want(buffered, "late"))
	}
	return run(f, script, func(c *client) error {
		resp, err := c.roundTrip("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\nearly")
		if err != nil {
			return err
		}
		if err := errors.Join(wantStatus(resp, http.StatusSwitchingProtocols), want(c.r, "tunnel")); err != nil {
			return err
		}
		if err := c.send("late"); err != nil {
			return err
		}
		if b, err := c.r.ReadByte(); err != io.EOF {
			return fmt.Errorf("after the tunnel: byte %q, error %v", b, err)
		}
		return nil
	})
}

// checkAbort: a panic with http.ErrAbortHandler reaches the server, so that a part of a
// body does not look complete.
func checkAbort(f culvert.Filter, _ options) error {
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	return run(f, script, func(c *client) error {
		resp, err := c.roundTrip(get)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // aborted even before the header
		}
		if err != nil {
			return err
		}
		if body, err := io.ReadAll(resp.Body); err == nil {
			return fmt.Errorf("the aborted response looks complete: %q", body)
		}
		return nil
	})
}

// checkCancel: the request's context is cancelled when the client disconnects.
func checkCancel(f culvert.Filter, _ options) error {
	running, ended := make(chan struct{}), make(chan struct{})
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		close(running)
		defer close(ended)
		if !await(r.Context().Done()) {
			s.failf("the client has disconnected, but the context is not cancelled")
		}
	}
	return run(f, script, func(c *client) error {
		if err := c.send(get); err != nil {
			return err
		}
		if !await(running) {
			return errors.New("the handler was not called")
		}
		c.conn.Close()
		await(ended)
		return nil
	})
}

// checkKeepAlive: the connection serves a second request.
func checkKeepAlive(f culvert.Filter, _ options) error {
	script := func(_ *stage, w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RequestURI)
	}
	return run(f, script, func(c *client) error {
		for _, target := range []string{"/one", "/two"} {
			resp, err := c.roundTrip("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")
			if err != nil {
				return err
			}
			if err := wantBody(resp, target); err != nil {
				return err
			}
		}
		return nil
	})
}
