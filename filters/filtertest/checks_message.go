package filtertest

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert"
)

// checkRequest: method, bytes of the request target, host, header fields, body and context reach
// the handler unchanged.
func checkRequest(f culvert.Filter, _ options) error {
	const target = "/a%2Fb//c;d?z=1&a=2&sig=%zz"
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		if r.Method != "PUT" || r.RequestURI != target || r.URL.EscapedPath() != "/a%2Fb//c;d" || r.URL.RawQuery != "z=1&a=2&sig=%zz" || r.Host != "x.example" {
			s.failf("got %s %s, path %s, query %s, host %s", r.Method, r.RequestURI, r.URL.EscapedPath(), r.URL.RawQuery, r.Host)
		}
		if got := r.Header["X-Two"]; len(got) != 2 || got[0] != "1" || got[1] != "2" {
			s.failf("field X-Two is %q", got)
		}
		if r.Context().Value(contextKey{}) != "kept" {
			s.failf("the values of the context are gone")
		}
		body, err := io.ReadAll(r.Body)
		s.check("reading the body", err)
		if string(body) != "hello" {
			s.failf("body %q", body)
		}
		w.WriteHeader(http.StatusNoContent)
	}
	return run(f, script, func(c *client) error {
		resp, err := c.roundTrip("PUT " + target + " HTTP/1.1\r\nHost: x.example\r\nX-Two: 1\r\nX-Two: 2\r\nContent-Length: 5\r\n\r\nhello")
		if err != nil {
			return err
		}
		return wantStatus(resp, http.StatusNoContent)
	})
}

// checkResponse: status, header fields and body reach the client unchanged.
func checkResponse(f culvert.Filter, _ options) error {
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Two"] = []string{"1", "2"}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTeapot)
		_, err := io.WriteString(w, "short")
		s.check("writing", err)
		_, err = w.Write([]byte(" and stout"))
		s.check("writing", err)
	}
	return run(f, script, func(c *client) error {
		resp, err := c.roundTrip(get)
		if err != nil {
			return err
		}
		if got := resp.Header["X-Two"]; len(got) != 2 {
			return errors.New("one of two fields of a name is gone")
		}
		return errors.Join(wantStatus(resp, http.StatusTeapot), wantField(resp.Header, "Content-Type", "text/plain"), wantBody(resp, "short and stout"))
	})
}

// checkEmpty: the response of a handler that writes nothing has the status 200.
func checkEmpty(f culvert.Filter, _ options) error {
	return run(f, func(*stage, http.ResponseWriter, *http.Request) {}, func(c *client) error {
		resp, err := c.roundTrip(get)
		if err != nil {
			return err
		}
		return errors.Join(wantStatus(resp, http.StatusOK), wantBody(resp, ""))
	})
}

// checkInterim: a 103 reaches the client before the final header, which the handler can
// still change.
func checkInterim(f culvert.Filter, _ options) error {
	script := func(_ *stage, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.Header().Set("X-Final", "1")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "body")
	}
	return run(f, script, func(c *client) error {
		interim, err := c.roundTrip(get)
		if err != nil {
			return err
		}
		if err := errors.Join(wantStatus(interim, http.StatusEarlyHints), wantField(interim.Header, "Link", "</a.css>")); err != nil {
			return err
		}
		final, err := c.next()
		if err != nil {
			return err
		}
		return errors.Join(wantStatus(final, http.StatusAccepted), wantField(final.Header, "X-Final", "1"), wantBody(final, "body"))
	})
}

// checkTrailers: the client receives trailers, announced or not.
func checkTrailers(f culvert.Filter, _ options) error {
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, err := io.WriteString(w, "body")
		s.check("writing", err)
		s.check("flushing", http.NewResponseController(w).Flush())
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-Late", "43")
	}
	return run(f, script, func(c *client) error {
		resp, err := c.roundTrip(get)
		if err != nil {
			return err
		}
		if err := wantBody(resp, "body"); err != nil {
			return err
		}
		return errors.Join(wantField(resp.Trailer, "X-Sum", "42"), wantField(resp.Trailer, "X-Late", "43"))
	})
}

// checkRequestTrailers: the handler receives the trailers of the request.
func checkRequestTrailers(f culvert.Filter, _ options) error {
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		s.check("reading the body", err)
		s.check("trailer", wantField(r.Trailer, "X-Sum", "42"))
	}
	return run(f, script, func(c *client) error {
		resp, err := c.roundTrip("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n")
		if err != nil {
			return err
		}
		return wantStatus(resp, http.StatusOK)
	})
}

// checkReadFrom: the writer implements io.ReaderFrom, so that sendfile and splice
// work, and the client receives every byte.
func checkReadFrom(f culvert.Filter, o options) error {
	large := strings.Repeat("0123456789abcdef", 1<<16)
	script := func(s *stage, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		if _, ok := w.(io.ReaderFrom); !ok && !o.transformsBody {
			s.failf("the ResponseWriter hides io.ReaderFrom")
		}
		n, err := io.Copy(w, strings.NewReader(large))
		s.check("copying", err)
		if n != int64(len(large)) {
			s.failf("copied %d bytes of %d", n, len(large))
		}
	}
	return run(f, script, func(c *client) error {
		resp, err := c.roundTrip(get)
		if err != nil {
			return err
		}
		return wantBody(resp, large)
	})
}
