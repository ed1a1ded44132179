package nginx

import (
	"context"
	"io"
	"log/slog"
	"os"
	"sync"

	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// The levels of nginx's error log that slog lacks, for Logger.
const (
	LevelNotice = engine.LevelNotice
	LevelEmerg  = engine.LevelEmerg
)

// Reopen opens all log files again, for a program that rotates them: rename the file, then call Reopen. Requests that are
// still completed under former configurations, or behind the begin of Shutdown, are logged there, too. A file that
// cannot be opened is kept as it is, and the first such error is returned. When everything has ended, Reopen does nothing.
func (s *Server) Reopen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.current.Load().engine.Reopen()
	for g := range s.former {
		if err := g.engine.Reopen(); first == nil {
			first = err
		}
	}
	return first
}

// Logger returns the logger of the main error log, which is at each line that of the configuration that is current then. Its
// lines have nginx's format, and error_log's level filters them.
func (s *Server) Logger() *slog.Logger { return slog.New(currentLog{s: s}) }

// currentLog is a slog.Handler that follows Reload.
type currentLog struct {
	s     *Server
	attrs []slog.Attr
}

func (l currentLog) handler() slog.Handler {
	h := l.s.current.Load().engine.Logger().Handler()
	if len(l.attrs) > 0 {
		h = h.WithAttrs(l.attrs)
	}
	return h
}

// Enabled implements slog.Handler.
func (l currentLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.s.current.Load().engine.Logger().Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l currentLog) Handle(ctx context.Context, r slog.Record) error {
	return l.handler().Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l currentLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return currentLog{l.s, append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)}
}

// WithGroup implements slog.Handler. nginx's lines have no groups.
func (l currentLog) WithGroup(string) slog.Handler { return l }

// serialize makes writes to w wait for each other: logs of several configurations and warnings are written there. If w is
// nil, they go to os.Stderr.
func serialize(w io.Writer) io.Writer {
	if w == nil {
		return os.Stderr
	}
	return &serialWriter{w: w}
}

type serialWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *serialWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
