package stream

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// nginx's levels that slog lacks, as package engine has them.
const (
	levelInfo  = slog.LevelInfo
	levelError = slog.LevelError
	levelAlert = slog.LevelError + 4
)

// Error logs an error of the session, with nginx's description of it.
func (s *Session) Error(text string) { s.LogAt(levelError, text) }

// LogAt is Error with another level.
func (s *Session) LogAt(level slog.Level, text string) {
	if !s.server.ErrorLog.Enabled(context.Background(), level) {
		return
	}
	udp := ""
	if s.udp {
		udp = "udp "
	}
	text = fmt.Sprintf("%s while %s, %sclient: %s, server: %s", text, s.action, udp, s.clientHost(), s.port.Name)
	if n := len(s.attempts); n > 0 {
		a := s.attempts[n-1]
		text += fmt.Sprintf(", upstream: \"%s\", %s", a.addr, s.bytes())
	}
	s.logPlain(level, text)
}

// bytes describes what was transferred.
func (s *Session) bytes() string {
	a := s.attempts[len(s.attempts)-1]
	return fmt.Sprintf("bytes from/to client:%d/%d, bytes from/to upstream:%d/%d", s.received.Load(), s.sent.Load(), a.received.Load(), a.sent.Load())
}

// logPlain logs a line without a description of the session.
func (s *Session) logPlain(level slog.Level, text string) {
	log := s.server.ErrorLog
	if !log.Enabled(context.Background(), level) {
		return
	}
	text = fmt.Sprintf("*%d %s", s.Conn.Serial, text)
	_ = log.Handle(context.Background(), slog.NewRecord(time.Now(), level, text, 0))
}
