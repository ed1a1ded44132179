package simulate

import "time"

// FramesPlan is how a client that speaks HTTP/2 by frames treats its connection.
type FramesPlan struct {
	Window  uint32        // of a stream at its beginning
	Step    uint32        // by which a closed window opens
	Late    time.Duration // before it opens
	Stingy  bool          // the connection's window is opened late, too
	Table   uint32        // of the header compression towards the client
	Split   int           // the bytes of a header block in a frame; 0: all
	Padding uint8         // of each frame of DATA
	Pings   int
	Changes []SettingsChange
	// GoAway ends the connection from the client's side behind so many requests; 0: never.
	GoAway int
}

// SettingsChange is a change of the windows of all streams at a moment.
type SettingsChange struct {
	After  time.Duration
	Window uint32
}

// newFramesPlan chooses it.
func newFramesPlan(c *Choices) FramesPlan {
	p := FramesPlan{
		Window: Pick[uint32](c, 65535, 0, 1, 100, 1<<20),
		Step:   Pick[uint32](c, 65535, 16384, 1000),
		Stingy: c.Bool(5),
		Table:  Pick[uint32](c, 4096, 0, 65536),
	}
	if c.Bool(2) {
		p.Late = time.Duration(c.Int(100)) * time.Duration(c.Int(60)) * time.Millisecond
	}
	if c.Bool(4) {
		p.Split = 1 + c.Int(40)
	}
	if c.Bool(4) {
		p.Padding = uint8(c.Int(256))
	}
	if c.Bool(6) {
		p.Pings = c.Int(200)
	}
	for range max(0, c.Int(6)-3) {
		p.Changes = append(p.Changes, SettingsChange{After: someTime(c), Window: Pick[uint32](c, 0, 1000, 65535, 1<<20)})
	}
	if c.Bool(8) {
		p.GoAway = 1 + c.Int(5)
	}
	return p
}
