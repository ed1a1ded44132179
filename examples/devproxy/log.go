package main

import (
	stdcontext "context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// log writes a line for each request that points to the cause:
//
//	09:00:01 GET /api/pods → http://127.0.0.1:8081/pods 200 in 12ms
//	09:00:02 GET /api/pods → http://127.0.0.1:8081 FAILED: nothing listens there (connection refused)
type log struct {
	mu  sync.Mutex
	out io.Writer
}

func newLog(out io.Writer) *log { return &log{out: out} }

// entry is the log's record of a request.
type entry struct {
	start  time.Time
	target *target // nil: the request was sent to none
	level  string
	result *culvert.Result
}

type entryKey struct{}

func (l *log) begin(r *http.Request) *http.Request {
	ctx, result := filters.WithResult(r.Context())
	e := &entry{start: time.Now(), level: "info", result: result}
	return r.WithContext(stdcontext.WithValue(ctx, entryKey{}, e))
}

func noteTarget(r *http.Request, t *target, level string) {
	e := r.Context().Value(entryKey{}).(*entry)
	e.target = t
	if level != "" {
		e.level = level
	}
}

func (l *log) hooks() filters.ResponseHooks {
	return filters.ResponseHooks{
		Header: func(r *http.Request, status int, _ http.Header) {
			if e := r.Context().Value(entryKey{}).(*entry); status == http.StatusSwitchingProtocols {
				l.write(e, "info", "%s %s → %s WebSocket open after %v", r.Method, r.RequestURI, e.target.name(), e.took())
			}
		},
		End: func(r *http.Request, s culvert.ResponseStats) { l.end(r, s) },
	}
}

func (l *log) end(r *http.Request, s culvert.ResponseStats) {
	e := r.Context().Value(entryKey{}).(*entry)
	request := r.Method + " " + r.RequestURI
	switch {
	case e.result.Err != nil:
		l.write(e, "error", "%s → %s FAILED: %s", request, e.target.name(), inWords(e.result.Err))
	case s.Hijacked:
		l.write(e, "info", "%s → %s WebSocket closed after %v, %d bytes from and %d to the browser", request, e.target.name(), e.took(), e.result.BytesIn, e.result.BytesOut)
	case e.target == nil:
		l.write(e, "debug", "%s %d, no rule", request, s.Status)
	case s.Status >= 500:
		l.write(e, "warn", "%s → %s %d in %v", request, e.target.name(), s.Status, e.took())
	default:
		l.write(e, "info", "%s → %s %d in %v", request, e.target.name(), s.Status, e.took())
	}
}

func (e *entry) took() time.Duration {
	d := time.Since(e.start)
	if d > time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}

var weights = map[string]int{"debug": 0, "info": 1, "warn": 2, "error": 3, "silent": 4}

// write writes a line unless the rule's level is above it.
func (l *log) write(e *entry, level, format string, args ...any) {
	if weights[level] < weights[e.level] {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// note writes a line that belongs to no request.
func (l *log) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(l.out, time.Now().Format("15:04:05"), text)
}

// inWords describes a failure for the developer who has to fix it.
func inWords(err error) string {
	var e *culvert.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there (connection refused): is the server running?"
	case e.Kind == culvert.DialFailed:
		return fmt.Sprintf("it can't be reached: %v", e.Err)
	case e.Kind == culvert.Timeout:
		return "it did not respond in time (proxyTimeout)"
	case e.Kind == culvert.ClientGone:
		return "the browser went away"
	case e.Kind == culvert.Forbidden:
		return "a page of another origin wanted the WebSocket"
	}
	return e.Kind.String() + ": " + fmt.Sprint(e.Err)
}

// explain responds with the words of the log: the browser's network panel is where a developer
// looks first.
func explain(w http.ResponseWriter, r *http.Request, err *culvert.Error) {
	e := r.Context().Value(entryKey{}).(*entry)
	http.Error(w, fmt.Sprintf("devproxy: %s: %s", e.target.name(), inWords(err)), err.Status())
}
