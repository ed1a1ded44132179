//go:build !linux

package wsupgrade

// loops exist on Linux only.
type loops struct{}

// polled returns false: there is only the portable engine.
func (t *Tunnel) polled(earlyBytes, func(*Tunnel)) bool { return false }
