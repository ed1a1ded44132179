//go:build !linux

package netloop

import (
	"errors"
	"net"
	"time"
)

// Set has no loops on this system.
type Set struct{}

// Waiter waits for a connection to be readable, on Linux only.
type Waiter struct{}

// Init returns errors.ErrUnsupported.
func (w *Waiter) Init(*Set, net.Conn, func(Reason)) error { return errors.ErrUnsupported }

// Wait returns errors.ErrUnsupported.
func (w *Waiter) Wait(time.Duration) error { return errors.ErrUnsupported }

// Stop returns false: there is no wait.
func (w *Waiter) Stop() bool { return false }
