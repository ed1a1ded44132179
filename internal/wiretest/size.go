package wiretest

import (
	"os"
	"testing"
)

// fullVariable is set where heavy tests run at their full size: by the gate (.ci/run).
const fullVariable = "CULVERT_TEST_FULL"

// Size returns how much a heavy test does: full if CULVERT_TEST_FULL is set in the environment, else quick, which
// finds faults as well, but fewer, or a quarter of that with -short. It is at least 1.
func Size(full, quick int) int {
	switch {
	case Full():
		return full
	case testing.Short():
		return max(1, quick/4)
	}
	return max(1, quick)
}

// Full reports whether heavy tests run at their full size.
func Full() bool { return os.Getenv(fullVariable) != "" }
