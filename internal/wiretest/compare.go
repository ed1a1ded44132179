package wiretest

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

// Lines returns header with its field lines sorted, names in lower case, behind
// its first line.
func Lines(header string) string {
	first, rest, _ := strings.Cut(header, "\r\n")
	lines := strings.Split(strings.TrimRight(rest, "\r\n"), "\r\n")
	for i, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		lines[i] = strings.ToLower(name) + ":" + value
	}
	slices.Sort(lines)
	return first + "\n" + strings.Join(lines, "\n")
}

// Await receives from c, or fails the test if nothing is received.
func Await[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
	return v
}

// Pattern is n bytes of which no two neighbouring blocks are alike.
func Pattern(n int) []byte {
	b := make([]byte, n)
	state := uint32(n)
	for i := range b {
		state = state*1664525 + 1013904223
		b[i] = byte(state >> 24)
	}
	return b
}

// SameBytes says where got and want part.
func SameBytes(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("%s: %d bytes, want %d, alike up to %d", what, len(got), len(want), i)
	}
}
