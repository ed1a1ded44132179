package simulate

import "time"

// Link says how one direction of a connection behaves.
type Link struct {
	Delay   time.Duration // of each segment
	Jitter  time.Duration // more, at random, below this
	Segment int           // the largest segment in bytes; 0: writes are not cut
	Window  int           // bytes on their way or unread, before a writer waits
	Fault   Fault
	Seed    uint64 // of the cuts and the jitter
}

// Fault is what happens to a direction when a number of bytes has gone through it.
type Fault struct {
	Kind  FaultKind
	At    int64         // in bytes
	Pause time.Duration // of FaultPause
}

// FaultKind is a kind of Fault.
type FaultKind int

const (
	// NoFault: every byte arrives.
	NoFault FaultKind = iota
	// FaultPause: what is written after At arrives later by Pause.
	FaultPause
	// FaultReset: both directions end, and what was not read is lost.
	FaultReset
	// FaultFIN: the reader reads up to At, and then the end.
	FaultFIN
	// FaultSilence: nothing after At arrives.
	FaultSilence
)

// String returns the kind's name.
func (k FaultKind) String() string {
	return [...]string{"none", "pause", "reset", "FIN", "silence"}[k]
}
