package simulate

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/wiretest"
	_ "github.com/culvert-go/culvert/wsupgrade/extendedconnect"
)

var (
	seed      = flag.Uint64("seed", 1, "the seed of the first history")
	histories = flag.Int("histories", 0, "how many histories are run; 0: 60, or 200 where CULVERT_TEST_FULL is set")
	repeat    = flag.String("repeat", "", "a list of choices to repeat, in place of seeds")
	stacks    = flag.Duration("stacks", 0, "print the goroutines at this moment of the history")
	shrink    = flag.Int("shrink", 1500, "how many histories are run to shrink one")
	keep      = flag.Bool("keep", false, "continue after a broken rule")
	workers   = flag.Int("workers", 0, "how many processes share the histories; 0: as many as processors, where there are many")
	threads   = flag.Int("threads", 1, "how many goroutines of a history run at a time")
	twice     = flag.Bool("twice", false, "run each history twice, and count those whose journals differ")
	first     = flag.Bool("first", false, "stop at the first broken rule, and don't shrink it")
)

// TestMain silences net/http's transport, which logs bytes that a target sends after its responses, and poisons pooled
// buffers, so that a use after their release shows. It removes the files of killed processes.
func TestMain(m *testing.M) {
	flag.Parse()
	if *histories == 0 && !*worker {
		*histories = wiretest.Size(200, 60)
	}
	log.SetOutput(io.Discard)
	bufpool.Poison = true
	untouchable.listen()
	removeLeft(os.TempDir())
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800) // a history leaves nothing alive
	}
	os.Exit(m.Run())
}

// TestHistories runs random histories, and shrinks the first one in which a rule breaks.
func TestHistories(t *testing.T) {
	if *realSockets {
		testReal(t, *histories)
		return
	}
	if *repeat != "" {
		j := runPlan(t, NewPlan(Repeat(parse(t, *repeat))))
		t.Errorf("%v\n%s", j.broken, j.Timeline())
		return
	}
	c := counts{begun: time.Now()}
	n := *workers
	if n == 0 {
		n = min(runtime.GOMAXPROCS(0), 1+*histories/1000)
	}
	if n > 1 && !*first {
		runWorkers(t, n, &c)
	} else {
		runHere(t, 1, &c)
	}
	fmt.Print(c.String())
}

// runHere runs every stepth history in this process, one after the other. One goroutine runs at a time, so that
// a seed's history repeats as far as it can (doc.go), and costs less.
func runHere(t *testing.T, step int, c *counts) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(*threads))
	for n := 0; n < *histories && !c.over(); n += step {
		runSeed(t, *seed+uint64(n), c)
		c.progress()
	}
}

// runSeed runs a seed's history, and shrinks the first one in which a rule breaks.
func runSeed(t *testing.T, s uint64, c *counts) {
	if *first {
		fmt.Printf("history %d\n", s-*seed+1) // the last one is that which ended the process
	}
	choices := NewChoices(s)
	plan := NewPlan(choices)
	j := runPlan(t, plan)
	foremost := c.add(plan, j)
	if *twice {
		c.compare(s, j, runPlan(t, NewPlan(NewChoices(s))))
	}
	switch {
	case len(j.broken) == 0:
	case *first:
		t.Errorf("found: %s within %d histories", j.broken[0].Rule, s-*seed+1)
	case *keep, j.broken[0].Rule == stoodStill: // each that is tried to shrink it would take a minute
		t.Errorf("seed %d: %v", s, j.broken[0])
	case foremost:
		report(t, s, choices.List(), j)
	}
}

// runPlan runs a plan in a bubble, and finds what it leaves behind.
func runPlan(t *testing.T, plan *Plan) *Journal {
	return inBubble(t, mostSeconds, func(j *Journal) { Run(plan, j) })
}

// report shrinks a history and prints it.
func report(t *testing.T, s uint64, list []uint32, j *Journal) {
	t.Helper()
	rule := j.broken[0].Rule
	shrunk := Shrink(list, *shrink, func(candidate []uint32) bool {
		j := runPlan(t, NewPlan(Repeat(candidate)))
		return len(j.broken) > 0 && j.broken[0].Rule == rule
	})
	plan := NewPlan(Repeat(shrunk))
	j = runPlan(t, plan)
	fmt.Printf("-repeat %s\n", join(shrunk))
	t.Errorf("seed %d breaks %q, shrunk from %d choices to %d:\n%+v\n\n%s", s, rule, len(list), len(shrunk), *plan, j.Timeline())
	for _, b := range j.broken {
		t.Errorf("%v", b)
	}
}

func join(list []uint32) string {
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, v)
	}
	return b.String()
}

func parse(t *testing.T, s string) (list []uint32) {
	for field := range strings.SplitSeq(s, ",") {
		v, err := strconv.ParseUint(field, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, uint32(v))
	}
	return list
}
