package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/wiretest"
)

const (
	get   = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	head  = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
	get10 = "GET / HTTP/1.0\r\n\r\n"
	keep  = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
	last  = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
)

// responseRow is what a handler's calls become.
type responseRow struct {
	name    string
	request string
	handler func(w http.ResponseWriter)
	want    string // as replies shows it, several joined with a blank line; "" for none
	closed  bool   // the connection is closed
	logged  string // is in the server's log; "": nothing is logged
}

const text = "Content-Type: text/plain; charset=utf-8"

func write(body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { _, _ = io.WriteString(w, body) }
}

// serving returns a handler that calls next.
func serving(next func(http.ResponseWriter)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { next(w) }
}

func flush(w http.ResponseWriter) { w.(http.Flusher).Flush() }

// set returns a handler that sets fields, by names and values in turn, and then calls next.
func set(next func(http.ResponseWriter), pairs ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(pairs); i += 2 {
			w.Header().Add(pairs[i], pairs[i+1])
		}
		next(w)
	}
}

// status returns a handler that writes a header and then calls next.
func status(code int, next func(http.ResponseWriter)) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(code)
		next(w)
	}
}

func nothing(http.ResponseWriter) {}

// refused fails the test unless a write returns n and an error that is want.
func refused(t testing.TB, w http.ResponseWriter, body string, want error) {
	t.Helper()
	if n, err := io.WriteString(w, body); n != 0 || err != want {
		t.Errorf("write of %q: %d, %v, want %v", body, n, err, want)
	}
}

func lengthRows(t testing.TB) []responseRow {
	return []responseRow{
		{"nothing", get, nothing, "HTTP/1.1 200 OK|Content-Length: 0", false, ""},
		{"a write of no bytes", get, write(""), "HTTP/1.1 200 OK|Content-Length: 0", false, ""},
		{"little", get, write("hello"), "HTTP/1.1 200 OK|Content-Length: 5|" + text + "||hello", false, ""},
		{"little in pieces", get, func(w http.ResponseWriter) {
			for _, s := range []string{"he", "", "llo"} {
				if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
					t.Errorf("write: %d, %v", n, err)
				}
			}
		}, "HTTP/1.1 200 OK|Content-Length: 5|" + text + "||hello", false, ""},
		{"much", get, write(strings.Repeat("much ", 20_000)), "HTTP/1.1 200 OK|" + text + "|Transfer-Encoding: chunked||" + strings.Repeat("much ", 20_000), false, ""},
		{"flushed", get, func(w http.ResponseWriter) { write("he")(w); flush(w); write("llo")(w) },
			"HTTP/1.1 200 OK|" + text + "|Transfer-Encoding: chunked||hello", false, ""},
		{"flushed before the body", get, func(w http.ResponseWriter) { flush(w); write("hello")(w) },
			"HTTP/1.1 200 OK|Transfer-Encoding: chunked||hello", false, ""},
		{"flushed without body", get, flush, "HTTP/1.1 200 OK|Transfer-Encoding: chunked", false, ""},
		{"a length", get, set(write("hello"), "Content-Length", "5"), "HTTP/1.1 200 OK|Content-Length: 5|" + text + "||hello", false, ""},
		{"a length, flushed", get, set(func(w http.ResponseWriter) { flush(w); write("he")(w); flush(w); write("llo")(w) }, "Content-Length", "5"),
			"HTTP/1.1 200 OK|Content-Length: 5||hello", false, ""},
		{"a length of 0", get, set(nothing, "Content-Length", "0"), "HTTP/1.1 200 OK|Content-Length: 0", false, ""},
		{"too little", get, set(write("hello"), "Content-Length", "6"), "HTTP/1.1 200 OK|Content-Length: 6|" + text + "||helloBROKEN: unexpected EOF \"\"", true, ""},
		{"nothing of a length", get, set(nothing, "Content-Length", "6"), "HTTP/1.1 200 OK|Content-Length: 6||BROKEN: unexpected EOF \"\"", true, ""},
		{"too much", get, set(func(w http.ResponseWriter) { write("hello")(w); refused(t, w, "!", http.ErrContentLength) }, "Content-Length", "5"),
			"HTTP/1.1 200 OK|Content-Length: 5|" + text + "||hello", true, ""},
		{"too much at once", get, set(func(w http.ResponseWriter) { refused(t, w, "hello!", http.ErrContentLength) }, "Content-Length", "5"),
			"HTTP/1.1 200 OK|Content-Length: 5||BROKEN: unexpected EOF \"\"", true, ""},
		{"a length that is none", get, set(func(w http.ResponseWriter) { write("hello")(w); flush(w) }, "Content-Length", "five"),
			"HTTP/1.1 200 OK|" + text + "|Transfer-Encoding: chunked||hello", false, "invalid Content-Length"},
		{"a length below 0", get, set(func(w http.ResponseWriter) { write("hello")(w); flush(w) }, "Content-Length", "-5"),
			"HTTP/1.1 200 OK|" + text + "|Transfer-Encoding: chunked||hello", false, "invalid Content-Length"},
		{"a coding of its own", get, set(write("hello"), "Transfer-Encoding", "chunked"), "HTTP/1.1 200 OK|Transfer-Encoding: chunked||hello", false, ""},
		{"a coding beside a length", get, set(write("hello"), "Transfer-Encoding", "chunked", "Content-Length", "5"),
			"HTTP/1.1 200 OK|Transfer-Encoding: chunked||hello", false, "both Transfer-Encoding"},
		{"identity", get, set(write("hello"), "Transfer-Encoding", "identity"), "HTTP/1.1 200 OK|Connection: close||hello", true, ""},
	}
}

func versionRows(t testing.TB) []responseRow {
	return []responseRow{
		{"HTTP/1.0", get10, write("hello"), "HTTP/1.0 200 OK|Content-Length: 5|" + text + "||hello", true, ""},
		{"HTTP/1.0, flushed", get10, func(w http.ResponseWriter) { flush(w); write("hello")(w) }, "HTTP/1.0 200 OK||hello", true, ""},
		{"HTTP/1.0, much", get10, write(strings.Repeat("much ", 20_000)), "HTTP/1.0 200 OK|" + text + "||" + strings.Repeat("much ", 20_000), true, ""},
		{"HTTP/1.0, kept", keep, write("hello"), "HTTP/1.0 200 OK|Connection: keep-alive|Content-Length: 5|" + text + "||hello", false, ""},
		{"HTTP/1.0, kept with a length", keep, set(write("hello"), "Content-Length", "5"),
			"HTTP/1.0 200 OK|Connection: keep-alive|Content-Length: 5|" + text + "||hello", false, ""},
		{"HTTP/1.0, not kept without length", keep, func(w http.ResponseWriter) { flush(w); write("hello")(w) }, "HTTP/1.0 200 OK||hello", true, ""},
		{"HTTP/1.0, 304 kept", keep, status(304, nothing), "HTTP/1.0 304 Not Modified|Connection: keep-alive", false, ""},
		{"closed by the client", last, write("hello"), "HTTP/1.1 200 OK|Connection: close|Content-Length: 5|" + text + "||hello", true, ""},
		{"closed by the client, flushed", last, func(w http.ResponseWriter) { write("hello")(w); flush(w) },
			"HTTP/1.1 200 OK|Connection: close|" + text + "|Transfer-Encoding: chunked||hello", true, ""},
		{"closed by the handler", get, set(write("hello"), "Connection", "close"), "HTTP/1.1 200 OK|Connection: close|Content-Length: 5|" + text + "||hello", true, ""},
		{"closed by the handler, flushed", get, set(func(w http.ResponseWriter) { write("hello")(w); flush(w) }, "Connection", "close"),
			"HTTP/1.1 200 OK|Connection: close|" + text + "|Transfer-Encoding: chunked||hello", true, ""},
		{"Connection with another word", get, set(write("hello"), "Connection", "x"), "HTTP/1.1 200 OK|Connection: x|Content-Length: 5|" + text + "||hello", false, ""},
	}
}

func bodilessRows(t testing.TB) []responseRow {
	notAllowed := func(w http.ResponseWriter) { refused(t, w, "hello", http.ErrBodyNotAllowed) }
	return []responseRow{
		{"HEAD", head, write("hello"), "HTTP/1.1 200 OK|Content-Length: 5|" + text, false, ""},
		{"HEAD without body", head, nothing, "HTTP/1.1 200 OK", false, ""},
		{"HEAD with a length", head, set(nothing, "Content-Length", "5"), "HTTP/1.1 200 OK|Content-Length: 5", false, ""},
		{"HEAD with a length, written", head, set(write("hello"), "Content-Length", "5"), "HTTP/1.1 200 OK|Content-Length: 5|" + text, false, ""},
		{"HEAD, flushed", head, func(w http.ResponseWriter) { flush(w); write("hello")(w) }, "HTTP/1.1 200 OK", false, ""},
		{"HEAD, much", head, write(strings.Repeat("much ", 20_000)), "HTTP/1.1 200 OK|" + text, false, ""},
		{"204", get, status(204, notAllowed), "HTTP/1.1 204 No Content", false, ""},
		{"204 with a length", get, set(status(204, notAllowed), "Content-Length", "5"), "HTTP/1.1 204 No Content", false, ""},
		{"204 with a type", get, set(status(204, nothing), "Content-Type", "text/x"), "HTTP/1.1 204 No Content|Content-Type: text/x", false, ""},
		{"304", get, status(304, notAllowed), "HTTP/1.1 304 Not Modified", false, ""},
		{"304 with fields", get, set(status(304, nothing), "Content-Length", "5", "Content-Type", "text/x", "ETag", `"a"`),
			`HTTP/1.1 304 Not Modified|Etag: "a"`, false, ""},
		{"204 with a coding", get, set(status(204, flush), "Transfer-Encoding", "chunked"), "HTTP/1.1 204 No Content", false, ""},
		{"205", get, status(205, nothing), "HTTP/1.1 205 Reset Content|Content-Length: 0", false, ""},
		{"404", get, status(404, write("none")), "HTTP/1.1 404 Not Found|Content-Length: 4|" + text + "||none", false, ""},
		{"a status without text", get, status(299, nothing), "HTTP/1.1 299 status code 299|Content-Length: 0", false, ""},
		{"status 999", get, status(999, nothing), "HTTP/1.1 999 status code 999|Content-Length: 0", false, ""},
		{"status 99", get, status(99, nothing), "", true, "invalid WriteHeader code 99"},
		{"status 1000", get, status(1000, nothing), "", true, "invalid WriteHeader code 1000"},
		{"two headers", get, status(404, status(200, write("none"))), "HTTP/1.1 404 Not Found|Content-Length: 4|" + text + "||none", false, "superfluous"},
		{"a header behind a body", get, func(w http.ResponseWriter) { write("hello")(w); w.WriteHeader(404) },
			"HTTP/1.1 200 OK|Content-Length: 5|" + text + "||hello", false, "superfluous"},
	}
}

func fieldRows(testing.TB) []responseRow {
	const html = "Content-Type: text/html; charset=utf-8"
	return []responseRow{
		{"fields", get, set(nothing, "x-b", "1", "X-A", "2", "x-b", "3"), "HTTP/1.1 200 OK|Content-Length: 0|X-A: 2|X-B: 1|X-B: 3", false, ""},
		{"a field in small letters", get, func(w http.ResponseWriter) { w.Header()["x-a"] = []string{"1"} }, "HTTP/1.1 200 OK|Content-Length: 0|x-a: 1", false, ""},
		{"an empty value", get, set(nothing, "X-A", ""), "HTTP/1.1 200 OK|Content-Length: 0|X-A: ", false, ""},
		{"blanks around a value", get, set(nothing, "X-A", " \t1 2 "), "HTTP/1.1 200 OK|Content-Length: 0|X-A: 1 2", false, ""},
		{"lines in a value", get, set(nothing, "X-A", "1\r\nX-B: 2\nx"), "HTTP/1.1 200 OK|Content-Length: 0|X-A: 1  X-B: 2 x", false, ""},
		{"a name that is no token", get, func(w http.ResponseWriter) {
			w.Header()["X A"] = []string{"1"}
			w.Header()["X:A\r\n"] = []string{"1"}
			w.Header()[""] = []string{"1"}
		},
			"HTTP/1.1 200 OK|Content-Length: 0", false, ""},
		{"fields behind the header", get, set(status(200, set(write("hello"), "X-B", "2", "X-A", "3")), "X-A", "1"),
			"HTTP/1.1 200 OK|Content-Length: 5|" + text + "|X-A: 1||hello", false, ""},
		{"a field removed behind the header", get, set(status(200, func(w http.ResponseWriter) { w.Header().Del("X-A"); clear(w.Header()) }), "X-A", "1"),
			"HTTP/1.1 200 OK|Content-Length: 0|X-A: 1", false, ""},
		{"fields behind the body", get, func(w http.ResponseWriter) { write("hello")(w); w.Header().Set("X-A", "1") },
			"HTTP/1.1 200 OK|Content-Length: 5|" + text + "||hello", false, ""},
		{"a type", get, set(write("<html>"), "Content-Type", "text/x"), "HTTP/1.1 200 OK|Content-Length: 6|Content-Type: text/x||<html>", false, ""},
		{"a page", get, write("<html>"), "HTTP/1.1 200 OK|Content-Length: 6|" + html + "||<html>", false, ""},
		{"a page in pieces", get, func(w http.ResponseWriter) { write("<ht")(w); write("ml>")(w) }, "HTTP/1.1 200 OK|Content-Length: 6|" + html + "||<html>", false, ""},
		{"no type wanted", get, func(w http.ResponseWriter) { w.Header()["Content-Type"] = nil; write("<html>")(w) },
			"HTTP/1.1 200 OK|Content-Length: 6||<html>", false, ""},
		{"an empty type", get, set(write("<html>"), "Content-Type", ""), "HTTP/1.1 200 OK|Content-Length: 6|Content-Type: ||<html>", false, ""},
		{"a coding of the content", get, set(write("<html>"), "Content-Encoding", "x"), "HTTP/1.1 200 OK|Content-Encoding: x|Content-Length: 6||<html>", false, ""},
		{"an empty coding of the content", get, set(write("<html>"), "Content-Encoding", ""),
			"HTTP/1.1 200 OK|Content-Encoding: |Content-Length: 6|" + html + "||<html>", false, ""},
		{"a date of its own", get, set(nothing, "Date", "today"), "HTTP/1.1 200 OK|Content-Length: 0|Date: today", false, ""},
	}
}

func trailerRows(testing.TB) []responseRow {
	const ok = "HTTP/1.1 200 OK|"
	return []responseRow{
		{"announced", get, set(func(w http.ResponseWriter) { write("hello")(w); set(nothing, "X-T", "1", "X-U", "2", "X-T", "3")(w) }, "Trailer", "x-t, X-V", "Trailer", "X-W"),
			ok + text + "|Trailer: X-W|Trailer: x-t, X-V|Transfer-Encoding: chunked||hello||X-T: 1|X-T: 3", false, ""},
		{"announced, without body", get, set(func(w http.ResponseWriter) { flush(w); set(nothing, "X-T", "1")(w) }, "Trailer", "X-T"),
			ok + "Trailer: X-T|Transfer-Encoding: chunked||||X-T: 1", false, ""},
		{"announced, set before", get, set(write("hello"), "Trailer", "X-T", "X-T", "1"),
			ok + text + "|Trailer: X-T|Transfer-Encoding: chunked|X-T: 1||hello||X-T: 1", false, ""},
		{"by prefix", get, func(w http.ResponseWriter) {
			write("hello")(w)
			flush(w)
			set(nothing, http.TrailerPrefix+"X-T", "1")(w)
		},
			ok + text + "|Transfer-Encoding: chunked||hello||X-T: 1", false, ""},
		{"by prefix, set before", get, set(write("hello"), http.TrailerPrefix+"X-T", "1"),
			ok + text + "|Transfer-Encoding: chunked||hello||X-T: 1", false, ""},
		{"by prefix, set behind 3 KiB", get, func(w http.ResponseWriter) {
			write(strings.Repeat("x", 3<<10))(w)
			set(nothing, http.TrailerPrefix+"X-T", "1")(w)
		},
			ok + text + "|Transfer-Encoding: chunked||" + strings.Repeat("x", 3<<10) + "||X-T: 1", false, ""},
		{"by prefix, set behind a small body", get, func(w http.ResponseWriter) {
			write("hello")(w)
			set(nothing, http.TrailerPrefix+"X-T", "1")(w)
		},
			ok + "Content-Length: 5|" + text + "||hello", false, ""},
		{"by prefix, to HTTP/1.0", keep, func(w http.ResponseWriter) {
			write("hello")(w)
			set(nothing, http.TrailerPrefix+"X-T", "1")(w)
		},
			"HTTP/1.0 200 OK|Connection: keep-alive|Content-Length: 5|" + text + "||hello", false, ""},
		{"framing fields", get, set(func(w http.ResponseWriter) {
			write("hello")(w)
			flush(w)
			set(nothing, "Content-Length", "5", "Transfer-Encoding", "x")(w)
		},
			"Trailer", "Content-Length, Transfer-Encoding, Trailer"), ok + text + "|Trailer: Content-Length, Transfer-Encoding, Trailer|Transfer-Encoding: chunked||hello", false, ""},
		{"a value of two lines", get, set(func(w http.ResponseWriter) { write("hello")(w); set(nothing, "X-T", "1\r\n\r\nGET")(w) }, "Trailer", "X-T"),
			ok + text + "|Trailer: X-T|Transfer-Encoding: chunked||hello||X-T: 1    GET", false, ""},
		{"of HTTP/1.0", keep, set(func(w http.ResponseWriter) { write("hello")(w); set(nothing, "X-T", "1")(w) }, "Trailer", "X-T", "Content-Length", "5"),
			"HTTP/1.0 200 OK|Connection: keep-alive|Content-Length: 5|" + text + "|Trailer: X-T||hello", false, ""},
		{"behind a length", get, set(func(w http.ResponseWriter) { write("hello")(w); set(nothing, http.TrailerPrefix+"X-T", "1")(w) }, "Content-Length", "5"),
			ok + "Content-Length: 5|" + text + "||hello", false, ""},
	}
}

func interimRows(testing.TB) []responseRow {
	const final = "HTTP/1.1 200 OK|Content-Length: 5|" + text + "|Link: a||hello"
	return []responseRow{
		{"103", get, set(status(103, write("hello")), "Link", "a"), "HTTP/1.1 103 Early Hints|Link: a\n\n" + final, false, ""},
		{"102, 103, 103", get, status(102, set(status(103, status(103, write("hello"))), "Link", "a")),
			"HTTP/1.1 102 Processing\n\nHTTP/1.1 103 Early Hints|Link: a\n\nHTTP/1.1 103 Early Hints|Link: a\n\n" + final, false, ""},
		{"100", get, status(100, write("hello")), "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK|Content-Length: 5|" + text + "||hello", false, ""},
		{"to HTTP/1.0", get10, status(103, write("hello")), "HTTP/1.0 103 Early Hints\n\nHTTP/1.0 200 OK|Content-Length: 5|" + text + "||hello", true, ""},
		{"without framing fields", get, set(status(103, write("hello")), "Content-Length", "5", "Transfer-Encoding", ""),
			"HTTP/1.1 103 Early Hints\n\nHTTP/1.1 200 OK|Content-Length: 5|" + text + "||hello", false, ""},
	}
}

func panicRows(testing.TB) []responseRow {
	abort := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	return []responseRow{
		{"aborted", get, abort, "", true, ""},
		{"aborted with bytes that are not sent", get, func(w http.ResponseWriter) { write("hello")(w); abort(w) }, "", true, ""},
		{"aborted with bytes that are sent", get, func(w http.ResponseWriter) { write("hello")(w); flush(w); abort(w) },
			"HTTP/1.1 200 OK|" + text + "|Transfer-Encoding: chunked||helloBROKEN: unexpected EOF \"\"", true, ""},
		{"aborted behind a length", get, set(func(w http.ResponseWriter) { write("hello")(w); flush(w); abort(w) }, "Content-Length", "9"),
			"HTTP/1.1 200 OK|Content-Length: 9|" + text + "||helloBROKEN: unexpected EOF \"\"", true, ""},
		{"panic", get, func(http.ResponseWriter) { panic("the reason") }, "", true, "the reason"},
		{"panic with a stack", get, func(http.ResponseWriter) { panic("the reason") }, "", true, "contract_writer_test.go"},
		{"panic of nil", get, func(http.ResponseWriter) { panic(nil) }, "", true, "nil"}, //nolint:govet
		{"Goexit", get, func(http.ResponseWriter) { runtime.Goexit() }, "", true, ""},
	}
}

// ownResponses are those of package server that differ on purpose, by table and row.
var ownResponses = map[string]struct{ want, why string }{
	"trailers/by prefix, set behind a small body": {"HTTP/1.1 200 OK|" + text + "|Transfer-Encoding: chunked||hello||X-T: 1",
		"trailers do not depend on the length of the body"},
	"interim/to HTTP/1.0": {"HTTP/1.0 200 OK|Content-Length: 5|" + text + "||hello", "a client of HTTP/1.0 knows no interim responses (RFC 9110 section 15.2)"},
}

// What a client receives for the calls of a handler.
func TestContractResponses(t *testing.T) {
	tables := map[string]func(testing.TB) []responseRow{"length": lengthRows, "version": versionRows, "bodiless": bodilessRows,
		"fields": fieldRows, "trailers": trailerRows, "interim": interimRows, "panics": panicRows}
	onServers(t, func(t *testing.T, k kind) {
		for table, rows := range tables {
			for _, row := range rows(t) {
				name := table + "/" + row.name
				if differing, ok := ownResponses[name]; ok && k == own {
					row.want = differing.want
				}
				t.Run(name, func(t *testing.T) { row.check(t, k) })
			}
		}
	})
}

func (row *responseRow) check(t *testing.T, k kind) {
	log := new(testLog)
	_, addr := k.listen(t, &http.Server{ErrorLog: log.logger(), Handler: withProbe(serving(row.handler))})
	received, kept := exchange(t, addr, row.request)
	if got := strings.Join(received, "\n\n"); got != row.want || kept == row.closed {
		t.Errorf("kept: %v, received\n%.500s\nwant\n%.500s", kept, got, row.want)
	}
	if logged := log.String(); !strings.Contains(logged, row.logged) || row.logged == "" && logged != "" {
		t.Errorf("logged %q, want %q", logged, row.logged)
	}
}

// Many header fields and long ones are sent whole.
func TestContractLargeHeader(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		addr := k.handle(t, withProbe(func(w http.ResponseWriter, _ *http.Request) {
			for i := range 1000 {
				w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("v", i))
			}
			write("hello")(w)
		}))
		received, kept := exchange(t, addr, get)
		if len(received) != 1 || !kept || strings.Count(received[0], "|X-") != 1000 || !strings.Contains(received[0], "|X-999: "+strings.Repeat("v", 999)+"|") {
			t.Errorf("kept: %v, received %.300q", kept, received)
		}
	})
}

// The Date is there, in GMT; a handler can leave it out.
func TestContractDate(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/none" {
				w.Header()["Date"] = nil
			}
		})})
		for range 3 {
			if got := c.send(get); !strings.Contains(got, "\r\nDate: "+time.Now().UTC().Format(http.TimeFormat)+"\r\n") {
				t.Errorf("received %q at %v", got, time.Now())
			}
			time.Sleep(90 * time.Minute)
		}
		if got := c.send("GET /none HTTP/1.1\r\nHost: a\r\n\r\n"); strings.Contains(got, "Date") || got == "" {
			t.Errorf("received %q", got)
		}
	})
}

// Flush sends what was written, header and body, before the handler returns.
func TestContractFlush(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		next := make(chan struct{})
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for _, s := range []string{"", "a", "b"} {
				write(s)(w)
				flush(w)
				<-next
			}
		})})
		c.expect(c.send(get), "HTTP/1.1 200 OK\r\n")
		for _, want := range []string{"1\r\na\r\n", "1\r\nb\r\n", "0\r\n\r\n"} {
			next <- struct{}{}
			if got := c.received(); got != want {
				t.Errorf("received %q, want %q", got, want)
			}
		}
	})
}

// An interim response is sent at once.
func TestContractInterimAtOnce(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		next := make(chan struct{})
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-A", "1")
			w.WriteHeader(http.StatusEarlyHints)
			<-next
		})})
		if got := c.send(get); got != "HTTP/1.1 103 Early Hints\r\nX-A: 1\r\n\r\n" {
			t.Errorf("received %q", got)
		}
		close(next)
		c.expect(c.received(), "HTTP/1.1 200 OK\r\n")
	})
}

// ReadFrom, WriteString and Write agree about framing, for each kind of source.
func TestContractReadFrom(t *testing.T) {
	body := wiretest.Pattern(1 << 20)
	path := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(t *testing.T) io.Reader {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	sources := map[string]func(*testing.T) io.Reader{
		"memory":       func(*testing.T) io.Reader { return bytes.NewReader(body) },
		"file":         file,
		"limited file": func(t *testing.T) io.Reader { return io.LimitReader(file(t), int64(len(body))) },
	}
	onServers(t, func(t *testing.T, k kind) {
		for name, source := range sources {
			for _, declared := range []bool{true, false} {
				for _, before := range []string{"", "before"} {
					checkReadFrom(t, k, fmt.Sprintf("%s, declared: %v, before: %q", name, declared, before), source(t), declared, before, body)
				}
			}
		}
	})
}

func checkReadFrom(t *testing.T, k kind, name string, source io.Reader, declared bool, before string, body []byte) {
	addr := k.handle(t, withProbe(func(w http.ResponseWriter, _ *http.Request) {
		if declared {
			w.Header().Set("Content-Length", fmt.Sprint(len(before)+len(body)))
		}
		write(before)(w)
		if n, err := w.(io.ReaderFrom).ReadFrom(source); n != int64(len(body)) || err != nil {
			t.Errorf("%s: ReadFrom: %d, %v", name, n, err)
		}
	}))
	p := wiretest.Dial(t, addr)
	p.Send(get + probe)
	resp, got := p.Response("GET")
	if (resp.ContentLength >= 0) != declared {
		t.Errorf("%s: length %d", name, resp.ContentLength)
	}
	wiretest.SameBytes(t, name, []byte(got), append([]byte(before), body...))
	p.Status(http.StatusNoContent)
}

// ReadFrom sends nothing to a HEAD, and no more than was declared.
func TestContractReadFromBounds(t *testing.T) {
	onServers(t, func(t *testing.T, k kind) {
		body := strings.Repeat("b", 100<<10)
		addr := k.handle(t, withProbe(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = io.Copy(w, strings.NewReader(body))
		}))
		received, kept := exchange(t, addr, head)
		if want := fmt.Sprintf("HTTP/1.1 200 OK|Content-Length: %d|%s", len(body), text); len(received) != 1 || received[0] != want || !kept {
			t.Errorf("HEAD: kept: %v, received %.300q", kept, received)
		}
	})
}

// Writes to a client that has gone fail in the end, and the handler's context ends.
func TestContractWriteToGoneClient(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		left := false
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 10_000)); err != nil {
					break
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					break
				}
				time.Sleep(time.Second)
			}
			left = true
		})})
		c.send(get)
		c.Close()
		c.after(time.Minute)
		if !left {
			t.Error("the handler still writes")
		}
	})
}

// A response whose handler has written it whole is sent at once, though the client sends nothing more.
func TestContractManyRequests(t *testing.T) {
	onServersInBubble(t, func(t *testing.T, k kind) {
		n := 0
		c, _ := k.inBubble(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n++
			w.Header().Set("X-N", fmt.Sprint(n))
			_, _ = io.Copy(w, r.Body)
		})})
		for i := range 100 {
			got := replies(c.send(chunked+oneChunk(i)+"0\r\n\r\n"), "POST")
			want := fmt.Sprintf("|X-N: %d", i+1)
			if i > 0 {
				want += "||" + strings.Repeat("b", i)
			}
			if len(got) != 1 || !strings.HasSuffix(got[0], want) {
				t.Fatalf("request %d: %q", i, got)
			}
		}
	})
}
