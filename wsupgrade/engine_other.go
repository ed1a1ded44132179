//go:build !linux

package wsupgrade

// loops are what other systems have.
type loops struct{}

// polled says that only the portable engine is there.
func (t *Tunnel) polled(earlyBytes, func(*Tunnel)) bool { return false }
