//go:build !linux

package wsupgrade

// loops exist on Linux only.
type loops struct{}

func newLoops() *loops { return nil }

// moveToLoop returns false: this system has only the portable engine.
func (t *Tunnel) moveToLoop(earlyBytes, func(*Tunnel)) bool { return false }
