package netloop

// Reason is why a wait has ended.
type Reason int

const (
	// Readable is for a connection that has bytes to read, or whose end or error a read returns.
	Readable Reason = iota + 1
	// TimedOut is for a wait that has lasted as long as its timeout.
	TimedOut
)
