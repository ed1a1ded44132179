package simulate

import "time"

// Link says how one direction of a connection behaves.
type Link struct {
	Delay   time.Duration // of each segment
	Jitter  time.Duration // a random additional delay below this
	Segment int           // the largest segment in bytes; 0: writes are not cut
	Window  int           // how many bytes may be on their way or unread before a writer waits
	Fault   Fault
	Seed    uint64 // of the cuts and the jitter
}

// Fault is what happens to a direction after a number of bytes.
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
	// FaultPause: bytes after At arrive later by Pause.
	FaultPause
	// FaultReset: both directions end, and data that was not read is lost.
	FaultReset
	// FaultFIN: the reader reads the bytes up to At, and then EOF.
	FaultFIN
	// FaultSilence: nothing after At arrives.
	FaultSilence
)

// String returns the kind's name.
func (k FaultKind) String() string {
	return [...]string{"none", "pause", "reset", "FIN", "silence"}[k]
}
