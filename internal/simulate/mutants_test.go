package simulate

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var (
	mutantsRun  = flag.String("mutants", "", "run the mutants whose names match this expression; . is all")
	mutantLimit = flag.Int("limit", 20000, "how many histories a mutant may need")
	mutantsAt   = flag.Int("at-once", 2, "how many mutants run at the same time")
)

// mutant is a deliberate fault: a text of the product that is replaced.
type mutant struct {
	name     string
	file     string // from the module's root
	old, new string
}

// root is the module's root, from here.
const root = "../.."

// apply returns the file with the fault.
func (m *mutant) apply() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := strings.Count(string(text), m.old); n != 1 || m.old == m.new {
		return nil, fmt.Errorf("%s: its text stands %d times in %s", m.name, n, m.file)
	}
	return []byte(strings.Replace(string(text), m.old, m.new, 1)), nil
}

// verdict is what became of a mutant.
type verdict struct {
	mutant
	histories int    // within which it was found; 0: not found
	rule      string // that found it
	err       error
}

func (v *verdict) String() string {
	switch {
	case v.err != nil:
		return fmt.Sprintf("%-60s      - %v", v.name, v.err)
	case v.histories == 0:
		return fmt.Sprintf("%-60s      - not found within %d histories", v.name, *mutantLimit)
	}
	return fmt.Sprintf("%-60s %6d %s", v.name, v.histories, v.rule)
}

// TestMutants builds the simulator with one fault after the other, and prints the table: the mutant, within how
// many histories it is found, and the rule that finds it.
func TestMutants(t *testing.T) {
	if *mutantsRun == "" {
		return // it takes long
	}
	wanted := regexp.MustCompile(*mutantsRun)
	places := make(chan struct{}, *mutantsAt)
	var wg sync.WaitGroup
	var list []*verdict
	for _, m := range mutants {
		if !wanted.MatchString(m.name) {
			continue
		}
		v, dir := &verdict{mutant: m}, t.TempDir()
		list = append(list, v)
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			v.run(t.Context(), dir)
			fmt.Println(v) // at once, since the whole takes long
		})
	}
	wg.Wait()
	printTable(t, list)
}

// printTable prints all verdicts in the order of the mutants, and their counts.
func printTable(t *testing.T, list []*verdict) {
	found, most := 0, 0
	fmt.Printf("\n%-60s %6s %s\n", "mutant", "needed", "rule")
	for _, v := range list {
		fmt.Println(v)
		if v.histories == 0 {
			t.Errorf("%v", v)
			continue
		}
		found++
		most = max(most, v.histories)
	}
	fmt.Printf("%d of %d mutants found, each within %d histories\n", found, len(list), most)
}

var (
	foundBy  = regexp.MustCompile(`found: (.*) within (\d+) histories`)
	reached  = regexp.MustCompile(`(?m)^history (\d+)$`)
	deadLine = regexp.MustCompile(`(?m)^(panic: |fatal error: |WARNING: DATA RACE).*$`)
)

// run builds the simulator with the fault once and runs it until a rule breaks.
func (v *verdict) run(ctx context.Context, dir string) {
	overlay, err := v.overlay(dir)
	if err != nil {
		v.err = err
		return
	}
	binary := filepath.Join(dir, "simulate.test")
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		v.err = fmt.Errorf("does not build: %v\n%s", err, out)
		return
	}
	defer os.Remove(binary) // each has tens of megabytes
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^TestHistories$", "-test.cpu", "1", "-test.timeout", "0",
		"-first", "-seed", fmt.Sprint(*seed), "-histories", fmt.Sprint(*mutantLimit))
	cmd.Env = append(os.Environ(), "GOGC=400")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	v.read(string(out), err)
}

// read finds out what the simulator says.
func (v *verdict) read(out string, err error) {
	if at := foundBy.FindStringSubmatch(out); at != nil {
		v.rule = at[1]
		v.histories, _ = strconv.Atoi(at[2])
		return
	}
	if err == nil {
		return
	}
	// A panic on a goroutine, a data race, or time that does not pass.
	v.rule = "the process ends: " + deadLine.FindString(out)
	if all := reached.FindAllStringSubmatch(out, -1); all != nil {
		v.histories, _ = strconv.Atoi(all[len(all)-1][1])
	} else {
		v.err = fmt.Errorf("%v: %.500s", err, out)
	}
}

// overlay writes the file with the fault, and what has go build use it.
func (m *mutant) overlay(dir string) (path string, err error) {
	text, err := m.apply()
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(changed, text, 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
