package engine

import (
	"errors"
	"io"
	"log/slog"
)

// Engine is a loaded configuration.
type Engine struct {
	listeners []Listener
	settings  Settings
	logger    *slog.Logger
}

// Load reads and compiles a configuration. Its error is an *Error wherever the
// configuration is to blame, and prints as nginx's does.
func Load(o LoadOptions) (*Engine, error) {
	return nil, errors.New("engine: being written")
}

// Reopen opens all log files again (signal USR1).
func (e *Engine) Reopen() error { return nil }

// Close closes log files and idle connections to upstreams. Call it when no
// request is in flight any more.
func (e *Engine) Close() error { return nil }

// Dump writes the configuration's files as nginx -T does.
func (e *Engine) Dump(w io.Writer) {}
