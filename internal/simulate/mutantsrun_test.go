package simulate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
)

// verdict is what became of a mutant.
type verdict struct {
	*mutant `json:"-"`

	Name, Old, New string // of the mutant

	Ran   int    // for how many histories
	Found int    // within which it was found; 0: not found
	Rule  string // that found it
	Seed  uint64 // of the history that found it
	err   error
}

func (v *verdict) String() string {
	switch {
	case v.err != nil:
		return fmt.Sprintf("%-70s      - %v", v.name, v.err)
	case v.Found == 0:
		return fmt.Sprintf("%-70s      - not found within %d histories", v.name, v.Ran)
	}
	return fmt.Sprintf("%-70s %6d %s (seed %d)", v.name, v.Found, v.Rule, v.Seed)
}

// mutantRunner runs mutants, a few at a time. It has the simulator without a fault, too: a rule that a history
// breaks without the fault says nothing of it.
type mutantRunner struct {
	dir   string
	clean string // the simulator's path
	list  []*verdict
	saved *verdicts
}

func newMutantRunner(t *testing.T) *mutantRunner {
	dir := t.TempDir()
	r := &mutantRunner{dir: dir, clean: filepath.Join(dir, "clean.test"), saved: loadVerdicts(t, *mutantsSaved)}
	if err := build(t.Context(), "-o", r.clean); err != nil {
		t.Fatal(err)
	}
	return r
}

// build builds the simulator.
func build(ctx context.Context, flags ...string) error {
	args := append([]string{"test", "-c", "-ldflags=-s -w"}, flags...)
	if out, err := exec.CommandContext(ctx, "go", append(args, ".")...).CombinedOutput(); err != nil {
		return fmt.Errorf("does not build: %v\n%s", err, out)
	}
	return nil
}

// runAll runs those mutants that have not been found until each has run for limit histories.
func (r *mutantRunner) runAll(ctx context.Context, limit int) {
	places := make(chan struct{}, *mutantsAt)
	var wg sync.WaitGroup
	for i, v := range r.list {
		if v.Found > 0 || v.err != nil || v.Ran >= limit {
			continue
		}
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			v.run(ctx, r.clean, filepath.Join(r.dir, strconv.Itoa(i)), limit)
			fmt.Println(v) // at once, since the whole takes long
			r.saved.keep(v)
		})
	}
	wg.Wait()
}

// run builds the simulator with the fault and runs it until a rule breaks that holds without.
func (v *verdict) run(ctx context.Context, clean, dir string, limit int) {
	if v.err = os.MkdirAll(dir, 0o700); v.err != nil {
		return
	}
	defer os.RemoveAll(dir) // each has tens of megabytes
	overlay, err := v.overlay(dir)
	if err != nil {
		v.err = err
		return
	}
	binary := filepath.Join(dir, "mutant.test")
	flags := []string{"-overlay", overlay, "-o", binary}
	if raced[v.name] {
		flags = append(flags, "-race")
	}
	if v.err = build(ctx, flags...); v.err != nil {
		return
	}
	for v.Ran < limit && ctx.Err() == nil {
		n, rule, err := v.runUntilBroken(ctx, binary, *seed+uint64(v.Ran), limit-v.Ran)
		if err != nil {
			v.err = err
			return
		}
		if n == 0 {
			v.Ran = limit
			return
		}
		v.Ran += n
		if s := *seed + uint64(v.Ran) - 1; !v.holds(ctx, binary, s) && v.holds(ctx, clean, s) {
			v.Found, v.Rule, v.Seed = v.Ran, rule, s
			return
		}
	}
}

// proofs is how often a history that finds a fault must break no rule without the fault, each time as the first one of a
// process, and may be run to break one with it: some of what it does is the runtime's choice (doc.go).
const proofs = 3

// holds reports whether a seed's history breaks no rule without a fault.
func (v *verdict) holds(ctx context.Context, clean string, seed uint64) bool {
	for range proofs {
		if n, _, err := v.runUntilBroken(ctx, clean, seed, 1); n > 0 || err != nil {
			return false
		}
	}
	return true
}

var (
	foundBy  = regexp.MustCompile(`found: (.*) within (\d+) histories`)
	reached  = regexp.MustCompile(`(?m)^history (\d+)$`)
	deadLine = regexp.MustCompile(`(?m)^(panic: |fatal error: |WARNING: DATA RACE).*$`)
)

// runUntilBroken runs histories until a rule breaks or the process ends, by a panic on a goroutine or as time does
// not pass. It returns in which history that was, 0 for none, and the rule.
func (v *verdict) runUntilBroken(ctx context.Context, binary string, seed uint64, most int) (n int, rule string, err error) {
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^TestHistories$", "-test.cpu", "1", "-test.timeout", "0",
		"-first", "-seed", fmt.Sprint(seed), "-histories", fmt.Sprint(most), "-real="+fmt.Sprint(overSockets[v.name]))
	cmd.Env = append(os.Environ(), "GOGC=400", "GORACE=halt_on_error=1") // in the history that it shows in
	cmd.Dir = filepath.Dir(binary)
	out, err := cmd.CombinedOutput()
	if at := foundBy.FindSubmatch(out); at != nil {
		n, err := strconv.Atoi(string(at[2]))
		return n, string(at[1]), err
	}
	if err == nil {
		return 0, "", nil
	}
	all := reached.FindAllSubmatch(out, -1)
	if all == nil {
		return 0, "", fmt.Errorf("%v: %.500s", err, out)
	}
	n, err = strconv.Atoi(string(all[len(all)-1][1]))
	return n, "the process ends: " + string(deadLine.Find(out)), err
}
