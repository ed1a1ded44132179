package wiretest

import "os"

// fullVariable is set where heavy tests run at their full size: by the gate (.ci/run).
const fullVariable = "CULVERT_TEST_FULL"

// Size returns how much a heavy test does: full where CULVERT_TEST_FULL is set in the environment, else
// quick, which can fail as well, if less often.
func Size(full, quick int) int {
	if os.Getenv(fullVariable) != "" {
		return full
	}
	return quick
}
