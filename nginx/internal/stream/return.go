package stream

import (
	"context"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// Return sends a text and closes the connection.
type Return struct{ Text vars.Value }

// returnTimeout is how long a client may take for the text (ngx_stream_return_module.c).
const returnTimeout = 5 * time.Second

func (r *Return) serve(_ context.Context, s *Session) int {
	s.action = "returning text"
	text := r.Text.String(&s.Request)
	if s.failedPattern() {
		return statusFailed
	}
	if text == "" {
		return statusOK
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(returnTimeout))
	n, err := s.conn.Write([]byte(text))
	s.sent.Add(int64(n))
	switch {
	case err == nil:
		return statusOK
	case timedOut(err):
		s.LogAt(levelInfo, "connection timed out (110: Connection timed out)")
		return statusOK
	}
	s.LogAt(levelInfo, "send() failed ("+reason(err)+")")
	return statusFailed
}
