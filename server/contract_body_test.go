package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

const (
	expecting  = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
	interim100 = "HTTP/1.1 100 Continue\r\n\r\n"
	chunked    = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
)

// A 100 (Continue) is sent when the handler first reads, once.
func TestContractContinueAtFirstRead(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		read := make(chan struct{})
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-read
			got, err := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %v", got, err)
		})})
		for _, request := range []string{expecting, strings.Replace(expecting, "100-continue", "100-Continue", 1)} {
			c.expect(c.send(request), "")
			c.expect(c.after(time.Minute), "")
			read <- struct{}{}
			if got := c.received(); got != interim100 {
				t.Errorf("received %q at the first read", got)
			}
			if got := c.send("h"); got != "" {
				t.Errorf("received %q at the second read", got)
			}
			if got := replies(c.send("i"), "POST"); len(got) != 1 || !strings.HasSuffix(got[0], "||hi <nil>") {
				t.Errorf("received %q", got)
			}
		}
	})
}

// No 100 (Continue) is sent behind the final response. A client that has received none may send the body or not: the
// connection is closed. net/http's server waits for the body before, without end if there is no ReadTimeout.
func TestContractNoContinue(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"no read": func(http.ResponseWriter, *http.Request) {},
		"read behind the response": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			go func() { _, _ = r.Body.Read(make([]byte, 1)) }()
			time.Sleep(time.Second)
		},
		"read behind a header": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			go func() { _, _ = r.Body.Read(make([]byte, 1)) }()
			time.Sleep(time.Second)
		},
	}
	onServersInBubble(t, func(t *testing.T, k kind) {
		for name, h := range handlers {
			c, _ := k.inBubble(t, &http.Server{Handler: h})
			got := c.send(expecting) + c.after(time.Minute)
			if !strings.HasPrefix(got, "HTTP/1.1 200 ") && !strings.HasPrefix(got, "HTTP/1.1 403 ") ||
				!strings.Contains(got, "\r\nConnection: close\r\n") || strings.Contains(got, "100 ") {
				t.Errorf("%s: received %q", name, got)
			}
			if k == own && !c.closed() {
				t.Errorf("%s: the connection is open", name)
			}
		}
	})
}

// A handler that sends a 100 (Continue) itself sends the only one.
func TestContractOwnContinue(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusContinue)
			_, _ = io.Copy(io.Discard, r.Body)
		})})
		if got := c.send(expecting); got != interim100 {
			t.Errorf("received %q", got)
		}
		c.expect(c.send("hi"), "HTTP/1.1 200 OK\r\n")
		if c.closed() {
			t.Error("closed")
		}
	})
}

// A client that does not wait for the 100 (Continue) is served.
func TestContractContinueNotAwaited(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{Handler: withProbe(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
		})})
		got := c.send(expecting + "hi" + probe)
		if all := replies(got, "POST"); len(all) < 2 || !strings.HasSuffix(all[len(all)-2], "||hi") || all[len(all)-1] != probeReply {
			t.Errorf("received %q", all)
		}
	})
}

// An expectation without a body to come is ignored.
func TestContractContinueWithoutBody(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		})})
		for _, request := range []string{strings.Replace(expecting, ": 2", ": 0", 1), "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"} {
			c.expect(c.send(request), "HTTP/1.1 200 OK\r\n")
		}
	})
}

// badChunks are bodies that end in an error, and the connection with them.
var badChunks = map[string]string{
	"no size":                           "\r\nhi\r\n0\r\n\r\n",
	"a size with a plus":                "+2\r\nhi\r\n0\r\n\r\n",
	"a size with a minus":               "-2\r\nhi\r\n0\r\n\r\n",
	"a size with 0x":                    "0x2\r\nhi\r\n0\r\n\r\n",
	"a size with an underscore":         "0_2\r\nhi\r\n0\r\n\r\n",
	"a size of letters":                 "g\r\nhi\r\n0\r\n\r\n",
	"a blank before the size":           " 2\r\nhi\r\n0\r\n\r\n",
	"a size of 17 digits":               "00000000000000002\r\nhi\r\n0\r\n\r\n",
	"a size of 2^64+2":                  "10000000000000002\r\nhi\r\n0\r\n\r\n",
	"bare LF behind the size":           "2\nhi\r\n0\r\n\r\n",
	"bare CR behind the size":           "2\rhi\r\n0\r\n\r\n",
	"bare LF in an extension":           "2;a\nhi\r\n0\r\n\r\n",
	"bare CR in an extension":           "2;a\rb\r\nhi\r\n0\r\n\r\n",
	"bare LF behind the last size":      "2\r\nhi\r\n0\n\r\n",
	"data without end":                  "2\r\nhi0\r\n\r\n",
	"data that is longer":               "2\r\nhix\r\n0\r\n\r\n",
	"bare LF behind data":               "2\r\nhi\n0\r\n\r\n",
	"CR and another byte behind data":   "2\r\nhi\rx0\r\n\r\n",
	"a long extension":                  "2;" + strings.Repeat("a", 64<<10) + "\r\nhi\r\n0\r\n\r\n",
	"extensions without end":            strings.Repeat("1;"+strings.Repeat("a", 1000)+"\r\nh\r\n", 100) + "0\r\n\r\n",
	"a trailer without colon":           "0\r\nX-T\r\n\r\n",
	"a trailer with a blank in front":   "0\r\n X-T: 1\r\n\r\n",
	"a trailer with a control":          "0\r\nX-T: \x00\r\n\r\n",
	"a trailer with bare CR":            "0\r\nX-T: a\rb\r\n\r\n",
	"trailers without number":           "0\r\n" + strings.Repeat("a:\r\n", 512<<10) + "\r\n",
	"a trailer that is too long":        "0\r\nX-T: " + strings.Repeat("a", 2<<20) + "\r\n\r\n",
	"a byte in place of the last line":  "0\r\nx",
	"an end in place of the last chunk": "2\r\nhi\r\n",
}

// A body whose framing is broken fails with an error that is not io.EOF, after at most the bytes before the fault;
// nothing behind it is served.
func TestContractBadChunks(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		for name, body := range badChunks {
			t.Run(name, func(t *testing.T) {
				failures := make(chan error, 1)
				addr := k.handle(t, withProbe(func(w http.ResponseWriter, r *http.Request) {
					_, err := io.Copy(io.Discard, r.Body)
					if again, late := r.Body.Read(make([]byte, 1)); again != 0 || late == nil {
						t.Errorf("read again: %d, %v", again, late)
					}
					failures <- err
					flush(w)
				}))
				received, kept := exchange(t, addr, chunked+body)
				if err := wiretest.Await(t, failures, "request"); err == nil {
					t.Error("no error")
				}
				if len(received) != 1 || received[0] != "HTTP/1.1 200 OK|Connection: close|Transfer-Encoding: chunked" || kept {
					t.Errorf("received %q, kept: %v", received, kept)
				}
			})
		}
	})
}

// The handler that leaves a broken body unread does not have the bytes behind it served either.
func TestContractBadChunksUnread(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		addr := k.handle(t, withProbe(func(http.ResponseWriter, *http.Request) {}))
		for name, body := range badChunks {
			if received, kept := exchange(t, addr, chunked+body); len(received) > 1 || kept {
				t.Errorf("%s: received %q, kept: %v", name, received, kept)
			}
		}
	})
}

// Bodies that net/http's server accepts, and package server refuses, since a peer may read other ones (RFC 9112
// sections 5.1, 7.1 and 7.1.1 do not have these bytes there).
func TestContractStricterChunks(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		for name, body := range map[string]string{"behind a size": "2 \r\nhi\r\n0\r\n\r\n", "behind a trailer's name": "2\r\nhi\r\n0\r\nX-T : 1\r\n\r\n",
			"NUL in an extension": "2;\x00\r\nhi\r\n0\r\n\r\n"} {
			failures := make(chan error, 1)
			addr := k.handle(t, withProbe(func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				failures <- err
			}))
			_, kept := exchange(t, addr, chunked+body)
			if err := wiretest.Await(t, failures, "request"); (err != nil) != (k == own) || kept == (k == own) {
				t.Errorf("%s: %v, kept: %v", name, err, kept)
			}
		}
	})
}

// A body that its client ends early fails with io.ErrUnexpectedEOF.
func TestContractCutBody(t *testing.T) {
	const tail = "5;a=b\r\nhello\r\n0\r\nX-T: 1\r\n\r\n"
	requests := map[string]string{"no byte of a length": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
		"one byte of a length": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nh"}
	for n := range len(tail) {
		requests[fmt.Sprintf("%d bytes of chunks", n)] = chunked + tail[:n]
	}
	onServersInBubble(t, func(t *testing.T, k kind) {
		var failure error
		_, l := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, failure = io.Copy(io.Discard, r.Body)
		})})
		for name, request := range requests {
			c := l.dial(t)
			failure = nil
			c.send(request)
			_ = c.CloseWrite()
			c.after(time.Minute)
			inTrailers := strings.Contains(request, "\r\n0\r\n")
			if failure == nil || !errors.Is(failure, io.ErrUnexpectedEOF) && !inTrailers || !c.closed() {
				t.Errorf("%s: error %v, closed: %v", name, failure, c.closed())
			}
		}
	})
}

// Reads return what has arrived, and io.EOF again and again behind the end.
func TestContractBodyReads(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		read := make(chan string)
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			buf := make([]byte, 100)
			for range 4 {
				n, err := r.Body.Read(buf)
				if n == 0 && err == nil {
					t.Error("an empty read")
				}
				read <- string(buf[:n])
			}
			for range 2 {
				if n, err := r.Body.Read(buf); n != 0 || err != io.EOF {
					t.Errorf("read %d, %v behind the end", n, err)
				}
			}
			close(read)
		})})
		c.send(chunked)
		for _, step := range []struct{ sent, want string }{{"2\r\nhe\r\n", "he"}, {"1\r\nl\r\n", "l"}, {"2;x\r\nlo\r\n", "lo"}, {"1\r\n!\r\n0\r\n\r\n", "!"}} {
			c.send(step.sent)
			if got := <-read; got != step.want {
				t.Errorf("read %q behind %q, want %q", got, step.sent, step.want)
			}
		}
		<-read
	})
}

// A read of no bytes is no error.
func TestContractEmptyRead(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		addr := k.handle(t, withProbe(func(w http.ResponseWriter, r *http.Request) {
			if n, err := r.Body.Read(nil); n != 0 || err != nil {
				t.Errorf("read %d, %v", n, err)
			}
			_, _ = io.Copy(w, r.Body)
		}))
		received, kept := exchange(t, addr, chunked+"2\r\nhi\r\n0\r\n\r\n")
		if len(received) != 1 || !strings.HasSuffix(received[0], "||hi") || !kept {
			t.Errorf("received %q, kept: %v", received, kept)
		}
	})
}

// Reads behind Close, and after the handler has returned, fail with http.ErrBodyReadAfterClose.
func TestContractReadAfterClose(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		var body io.ReadCloser
		var closed error
		c, _ := k.inBubble(t, &http.Server{Handler: withProbe(func(_ http.ResponseWriter, r *http.Request) {
			body, closed = r.Body, nil
			if r.URL.Path == "/close" {
				if err := body.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				_, closed = body.Read(make([]byte, 1))
			}
		})})
		for _, rest := range []string{"Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"} {
			got := c.send("POST /close HTTP/1.1\r\nHost: a\r\n" + rest + probe)
			if all := replies(got, "POST"); len(all) != 2 || all[1] != probeReply || closed != http.ErrBodyReadAfterClose {
				t.Errorf("received %q, read behind Close: %v", all, closed)
			}
			c.send("POST / HTTP/1.1\r\nHost: a\r\n" + rest)
			if n, err := body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose {
				t.Errorf("read behind the handler: %d, %v", n, err)
			}
		}
	})
}

// A read that waits when the handler returns ends, and takes nothing from the next request.
func TestContractReadBehindHandler(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		leaving, ended := make(chan struct{}), make(chan struct{})
		addr := k.handle(t, withProbe(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = r.Body.Read(make([]byte, 1))
			go func() {
				_, _ = io.Copy(io.Discard, r.Body)
				close(ended)
			}()
			close(leaving)
		}))
		p := wiretest.Dial(t, addr)
		p.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nh")
		wiretest.Await(t, leaving, "request")
		_, _ = io.WriteString(p, "ello"+probe)
		p.End()
		if got := replies(p.Ended(), "POST"); len(got) == 0 || got[0] != "HTTP/1.1 200 OK|Content-Length: 0" || len(got) > 1 && got[1] != probeReply {
			t.Errorf("received %q", got)
		}
		wiretest.Await(t, ended, "end of the read")
	})
}

// leftBodies are bodies that a handler leaves, and whether the connection is kept.
var leftBodies = []struct {
	name string
	size int
	kept bool
}{{"no byte", 0, true}, {"small", 1000, true}, {"more than a buffer", 100 << 10, true}, {"large", 1 << 20, false}, {"very large", 8 << 20, false}}

// The rest of a body that the handler leaves is read up to a bound. Behind a larger one the connection is closed, in a
// way that the client, which first sends all of it, can read the response.
func TestContractLeftBody(t *testing.T) {
	handlers := map[string]http.HandlerFunc{
		"unread": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") },
		"closed": func(w http.ResponseWriter, r *http.Request) { r.Body.Close(); _, _ = io.WriteString(w, "done") },
		"a byte is read": func(w http.ResponseWriter, r *http.Request) {
			_, _ = r.Body.Read(make([]byte, 1))
			_, _ = io.WriteString(w, "done")
		},
		"flushed": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "done")
			w.(http.Flusher).Flush()
		},
		"replaced by another": func(w http.ResponseWriter, r *http.Request) { r.Body = http.NoBody; _, _ = io.WriteString(w, "done") },
	}
	onServers(t, func(t *testing.T, k kind) {
		var clients sync.WaitGroup
		for how, h := range handlers {
			addr := k.handle(t, withProbe(h))
			for _, row := range leftBodies {
				for framing, request := range map[string]string{
					"length": fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", row.size, strings.Repeat("b", row.size)),
					"chunks": chunked + oneChunk(row.size) + "0\r\n\r\n",
				} {
					clients.Go(func() {
						received, kept := exchange(t, addr, request)
						if len(received) != 1 || !strings.HasSuffix(received[0], "||done") || kept != row.kept {
							t.Errorf("%s, %s, %s: received %.200q, kept: %v", row.name, framing, how, received, kept)
						}
					})
				}
			}
		}
		clients.Wait()
	})
}

// Behind the response to a body that is not read, package server reads for a while what the client still sends, and
// then closes the connection: if it closed at once, the client's writes could fail before it has read the response (RFC
// 9112 section 9.6). net/http's server waits half a second, and reads nothing.
func TestContractLingeringClose(t *testing.T) {
	const header = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000000\r\n\r\n"
	onServersInBubble(t, func(t *testing.T, k kind) {
		_, l := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
		c := l.dial(t)
		got := c.send(header)
		if _, err := c.Write(make([]byte, 4<<20)); k == own && err != nil {
			t.Errorf("write: %v", err)
		}
		if all := replies(got + c.after(time.Minute)); len(all) != 1 || all[0] != "HTTP/1.1 200 OK|Connection: close|Content-Length: 0" || !c.closed() {
			t.Errorf("received %q, closed: %v", all, c.closed())
		}
		endless := l.dial(t)
		began := time.Now()
		for _, err := io.WriteString(endless, header); err == nil; _, err = endless.Write(make([]byte, 1000)) {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("a client that does not stop was read from for %v", took)
		}
	})
}

// oneChunk is a chunk of n bytes, "" for none.
func oneChunk(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%x\r\n%s\r\n", n, strings.Repeat("b", n))
}

// What a handler leaves of a body is not waited for without end: when the client sends nothing more, the connection is
// closed, if there is a ReadTimeout.
func TestContractLeftBodyUnsent(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		_, l := k.inBubble(t, &http.Server{ReadTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
		for _, request := range []string{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nh", chunked + "5\r\nh"} {
			c := l.dial(t)
			got := c.send(request) + c.after(time.Minute)
			if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !c.closed() {
				t.Errorf("received %q, closed: %v", got, c.closed())
			}
		}
	})
}

// A handler can read and write in turn once it has called EnableFullDuplex.
func TestContractFullDuplex(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{Handler: withProbe(func(w http.ResponseWriter, r *http.Request) {
			rc := http.NewResponseController(w)
			if err := rc.EnableFullDuplex(); err != nil {
				t.Error(err)
			}
			buf := make([]byte, 10)
			for {
				n, err := r.Body.Read(buf)
				_, _ = w.Write(buf[:n])
				if err := rc.Flush(); err != nil {
					t.Error(err)
				}
				if err != nil {
					return
				}
			}
		})})
		c.send(chunked)
		for _, b := range []string{"a", "b", "c"} {
			if got := c.send("1\r\n" + b + "\r\n"); !strings.HasSuffix(got, "1\r\n"+b+"\r\n") {
				t.Errorf("received %q for %q", got, b)
			}
		}
		if got := c.send("0\r\n\r\n" + probe); !strings.HasPrefix(got, "0\r\n\r\nHTTP/1.1 204 ") {
			t.Errorf("received %q behind the end", got)
		}
	})
}

// A goroutine of the handler may read the body while another one writes.
func TestContractConcurrentReadAndWrite(t *testing.T) {
	const size = 1 << 20
	onServers(t, func(t *testing.T, k kind) {
		addr := k.handle(t, withProbe(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			read := make(chan int64)
			go func() {
				n, _ := io.Copy(io.Discard, r.Body)
				read <- n
			}()
			for range 64 {
				_, _ = w.Write(make([]byte, size/64))
			}
			if n := <-read; n != size {
				t.Errorf("read %d bytes", n)
			}
		}))
		p := wiretest.Dial(t, addr)
		go p.Send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("b", size)) + probe)
		if _, body := p.Response("POST"); len(body) != size {
			t.Errorf("%d bytes", len(body))
		}
		p.Status(http.StatusNoContent)
	})
}

// A body that is read through http.MaxBytesReader fails with its error; the response says that the connection is closed
// where more than the server reads up is left.
func TestContractMaxBytes(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		failures := make(chan error, 1)
		addr := k.handle(t, withProbe(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, 10)
			_, err := io.Copy(io.Discard, r.Body)
			failures <- err
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		}))
		received, kept := exchange(t, addr, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", 1<<20, strings.Repeat("b", 1<<20)))
		var tooLarge *http.MaxBytesError
		if err := wiretest.Await(t, failures, "request"); !errors.As(err, &tooLarge) || tooLarge.Limit != 10 {
			t.Errorf("error %v", err)
		}
		if len(received) != 1 || !strings.HasPrefix(received[0], "HTTP/1.1 413 Request Entity Too Large|Connection: close|") || kept {
			t.Errorf("received %q, kept: %v", received, kept)
		}
	})
}
