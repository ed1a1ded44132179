package choices

import (
	"flag"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// Flags say which random histories a test runs: -seed, -histories, -repeat and -shrink.
type Flags struct {
	full, quick       int
	seed              *uint64
	histories, shrink *int
	repeat            *string
}

// NewFlags registers the flags. Without -histories each test runs as many as wiretest.Size says of full and
// quick. A test package calls it once, where it declares a variable.
func NewFlags(full, quick int) *Flags {
	return &Flags{
		full:      full,
		quick:     quick,
		seed:      flag.Uint64("seed", 1, "the seed of the first history"),
		histories: flag.Int("histories", 0, fmt.Sprintf("how many histories each test runs; 0: %d, or %d where tests run at their full size", quick, full)),
		shrink:    flag.Int("shrink", 3000, "how many histories are run to shrink one"),
		repeat:    flag.String("repeat", "", "a list of choices to repeat, in place of seeds"),
	}
}

// Run runs a history for each seed, on all processors. history must depend on its choices alone,
// and must be safe for concurrent use; it returns what is wrong, and a panic is wrong, too. Run shrinks the
// first history in which something is, and reports it with its choices.
func (f *Flags) Run(t *testing.T, history func(*testing.T, *Choices) error) {
	t.Helper()
	if *f.repeat != "" {
		list, err := parse(*f.repeat)
		if err == nil {
			err = run(t, Repeat(list), history)
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
	histories := *f.histories
	if histories == 0 {
		histories = wiretest.Size(f.full, f.quick)
	}
	var begun, ended, decisions atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for n := begun.Add(1) - 1; n < int64(histories); n = begun.Add(1) - 1 {
				c := New(*f.seed + uint64(n))
				err := run(t, c, history)
				ended.Add(1)
				decisions.Add(int64(len(c.List())))
				if err != nil && begun.Swap(math.MaxInt32) < math.MaxInt32 {
					f.report(t, *f.seed+uint64(n), c.List(), history, err)
				}
			}
		})
	}
	t.Cleanup(func() { t.Logf("%d histories of %d choices, from seed %d on", ended.Load(), decisions.Load(), *f.seed) })
}

// report shrinks a history and reports it.
func (f *Flags) report(t *testing.T, seed uint64, list []uint32, history func(*testing.T, *Choices) error, first error) {
	t.Helper()
	shrunk := Shrink(list, *f.shrink, func(candidate []uint32) bool {
		return run(t, Repeat(candidate), history) != nil
	})
	err := run(t, Repeat(shrunk), history)
	if err == nil {
		t.Errorf("seed %d: %v\nand nothing is wrong when it runs again: it does not depend on its choices alone", seed, first)
		return
	}
	t.Errorf("seed %d, shrunk from %d choices to %d: %v\nrun it again with -repeat %s", seed, len(list), len(shrunk), err, join(shrunk))
}

// run runs a history, and makes an error of a panic.
func run(t *testing.T, c *Choices, history func(*testing.T, *Choices) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return history(t, c)
}

func join(list []uint32) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = strconv.FormatUint(uint64(v), 10)
	}
	return strings.Join(texts, ",")
}

func parse(s string) (list []uint32, err error) {
	for field := range strings.SplitSeq(s, ",") {
		v, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("-repeat: %w", err)
		}
		list = append(list, uint32(v))
	}
	return list, nil
}
