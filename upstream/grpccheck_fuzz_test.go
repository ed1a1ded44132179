package upstream

import "testing"

// No message makes the parser of health checks fail, and those that it accepts as healthy have a field that says so.
func FuzzServingStatus(f *testing.F) {
	for _, seed := range []string{"", "\x08\x01", "\x08\x02", "\x12\x03abc\x08\x01", "\x08\x81\x00", "\x09\x00", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, m []byte) {
		status, err := parseServing(m)
		if err != nil || status == 0 {
			return
		}
		// The last field of that number wins, so that one more decides.
		for _, more := range []byte{serving, 2} {
			if got, err := parseServing(append(m[:len(m):len(m)], 1<<3, more)); err != nil || got != uint64(more) {
				t.Fatalf("%x and the status %d: %d, %v", m, more, got, err)
			}
		}
	})
}
