package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// What was read ahead of a body, to notice that the client leaves, the handler reads later, whole and with the trailers. A body
// that is not short is not read ahead without bound, and the next request is found.
func TestReadAheadLosesNothing(t *testing.T) {
	for _, size := range []int{1, 5, 100, aheadBytes - 1, aheadBytes, aheadBytes + 1, 3 * aheadBytes, 200_000} {
		for _, chunked := range []bool{false, true} {
			for _, pieces := range []int{1, 2, 7} {
				name := fmt.Sprintf("%d bytes, chunked: %v, %d pieces", size, chunked, pieces)
				content := strings.Repeat("0123456789", size/10+1)[:size]
				synctest.Test(t, func(t *testing.T) {
					step := make(chan bool)
					s := handler(func(w http.ResponseWriter, r *http.Request) {
						if r.Method != http.MethodPost {
							return
						}
						_ = r.Context().Done()
						w.(http.Flusher).Flush()
						<-step // the watch may read
						first := make([]byte, min(size, 3))
						n, _ := io.ReadFull(r.Body, first)
						w.(http.Flusher).Flush()
						<-step
						rest, err := io.ReadAll(r.Body)
						if got := string(first[:n]) + string(rest); got != content || err != nil || chunked && r.Trailer.Get("A") != "b" {
							t.Errorf("%s: %d bytes, %v, trailers %v", name, len(got), err, r.Trailer)
						}
					})
					l := newPipes()
					startOn(t, s, func() error { return s.Serve(l) })
					p := l.dial(t)
					sent := make(chan bool)
					go func() {
						sendBody(p, content, chunked, pieces)
						close(sent)
					}()
					header := p.Header()
					if !strings.HasPrefix(header, "HTTP/1.1 200 ") {
						t.Errorf("%s: %q", name, header)
					}
					time.Sleep(time.Second)
					step <- true
					time.Sleep(time.Second)
					step <- true
					<-sent
					p.Receive("0\r\n\r\n")
					p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
					p.Status(http.StatusOK)
				})
			}
		}
	}
}

// Reading ahead may end at each byte of the chunks' lines and of the trailers: the handler reads on from there.
func TestReadAheadEndsAnywhere(t *testing.T) {
	const header = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n"
	const body = "10;e=f\r\n0123456789abcdef\r\n0\r\nA: b\r\nB: c\r\n\r\n"
	for cut := range len(body) {
		synctest.Test(t, func(t *testing.T) {
			reads := make(chan bool)
			l, s := newPipes(), handler(func(w http.ResponseWriter, r *http.Request) {
				_ = r.Context().Done()
				w.(http.Flusher).Flush()
				<-reads
				content, err := io.ReadAll(r.Body)
				if string(content) != "0123456789abcdef" || err != nil || r.Trailer.Get("A")+r.Trailer.Get("B") != "bc" {
					t.Errorf("behind %q: %q, %v, trailers %v", body[:cut], content, err, r.Trailer)
				}
			})
			startOn(t, s, func() error { return s.Serve(l) })
			p := l.dial(t)
			p.Send(header + body[:cut])
			_ = p.Header()
			synctest.Wait() // what was sent is read ahead
			reads <- true
			synctest.Wait() // the handler waits for the rest
			_, _ = io.WriteString(p.Conn, body[cut:])
			p.Receive("0\r\n\r\n")
		})
	}
}

// sendBody sends a POST with content, in pieces with a pause between them.
func sendBody(p *wiretest.Peer, content string, chunked bool, pieces int) {
	raw := fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(content), content)
	if chunked {
		raw = fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n%x\r\n%s\r\n0\r\nA: b\r\n\r\n", len(content), content)
	}
	for i := range pieces {
		p.Send(raw[len(raw)*i/pieces : len(raw)*(i+1)/pieces])
		time.Sleep(100 * time.Millisecond)
	}
}

// A body that has a rest of more than aheadBytes is not read to its end before its handler does, and not at all if that is known.
func TestReadAheadIsBounded(t *testing.T) {
	for framing, most := range map[string]int64{"Content-Length: 1000000\r\n\r\n": 0,
		"Transfer-Encoding: chunked\r\n\r\nf4240\r\n": aheadBytes + readBuffer} {
		synctest.Test(t, func(t *testing.T) {
			l, ended := newPipes(), make(chan bool)
			s := handler(func(w http.ResponseWriter, r *http.Request) {
				_ = r.Context().Done()
				w.(http.Flusher).Flush()
				<-ended
			})
			startOn(t, s, func() error { return s.Serve(l) })
			p := l.dial(t)
			go p.Header()
			p.Send("POST / HTTP/1.1\r\nHost: a\r\n" + framing)
			var sent atomic.Int64 // into a pipe, which has no buffer
			go func() {
				for b := make([]byte, 1000); ; sent.Add(int64(len(b))) {
					if _, err := p.Write(b); err != nil {
						return
					}
				}
			}()
			synctest.Wait()
			if n := sent.Load(); n > most {
				t.Errorf("%q: %d bytes were read", framing, n)
			}
			close(ended)
			p.Close()
		})
	}
}

// The trailers that the server reads behind its handler, for the next request's sake, do not change the request: the handler
// may have kept it.
func TestTrailersBehindHandler(t *testing.T) {
	for _, announced := range []string{"", "Trailer: A\r\n"} {
		var kept *http.Request
		s := handler(func(_ http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				kept = r
				return
			}
			if kept.Trailer.Get("A") != "" {
				t.Errorf("the request's trailers have become %v", kept.Trailer)
			}
		})
		p := wiretest.Dial(t, start(t, s))
		p.Send("POST / HTTP/1.1\r\nHost: a\r\n" + announced + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n")
		p.Status(http.StatusOK)
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		p.Status(http.StatusOK)
	}
}

// A header whose first byte came while the request before it was served has ReadHeaderTimeout, not IdleTimeout.
func TestHeaderThatBeginsWithTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		s := handler(func(_ http.ResponseWriter, r *http.Request) {
			_ = r.Context().Done()
			time.Sleep(time.Second)
		})
		s.ReadHeaderTimeout, s.IdleTimeout = 2*time.Second, time.Minute
		startOn(t, s, func() error { return s.Serve(l) })
		p := l.dial(t)
		begun := time.Now()
		p.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		p.Send("G")
		p.Status(http.StatusOK)
		_ = p.Ended()
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}
