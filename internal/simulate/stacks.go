package simulate

import (
	"runtime"
	"strings"
)

// others returns the stacks of the caller's bubble, except its own and the test's.
func others() string {
	buf := make([]byte, 1<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	_, own, _ := strings.Cut(strings.SplitN(stacks[0], "]", 2)[0], "synctest bubble ")
	var b strings.Builder
	for _, g := range stacks[1:] {
		if strings.Contains(g, "synctest bubble "+own+"]") && !strings.Contains(g, "testing/synctest.Test") {
			b.WriteString(g + "\n\n")
		}
	}
	return b.String()
}

// left returns the stacks of goroutines that a bubble has in addition to those it began with. To take stacks stops the
// process and costs as much as a small history, so the goroutines are counted first.
func left(began int) string {
	if runtime.NumGoroutine() <= began {
		return ""
	}
	return others()
}

// everything returns all stacks.
func everything() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}
