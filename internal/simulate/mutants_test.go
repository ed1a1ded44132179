package simulate

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mutantsRun  = flag.String("mutants", "", "run the mutants whose names match this expression; . is all")
	mutantLimit = flag.Int("limit", 20000, "how many histories a mutant may need")
)

// mutant is a deliberate fault: a text of the product that is replaced.
type mutant struct {
	name     string
	file     string // from the module's root
	old, new string
}

// root is the module's root, from here.
const root = "../.."

// TestMutantsApply checks that the text of each mutant still stands exactly once.
func TestMutantsApply(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants {
		if names[m.name] {
			t.Errorf("two mutants are called %q", m.name)
		}
		names[m.name] = true
		if _, err := m.apply(); err != nil {
			t.Error(err)
		}
	}
}

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

// TestMutants builds the simulator with one fault after the other, and prints within how many histories each is
// found.
func TestMutants(t *testing.T) {
	if *mutantsRun == "" {
		return // it takes long
	}
	wanted := regexp.MustCompile(*mutantsRun)
	for _, m := range mutants {
		if !wanted.MatchString(m.name) {
			continue
		}
		result, err := m.run(t.TempDir())
		fmt.Printf("%-55s %s\n", m.name, result)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

var found = regexp.MustCompile(`found: (.*) within (\d+) histories`)

// run builds and runs the simulator with the fault, and returns what found it.
func (m *mutant) run(dir string) (result string, err error) {
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "simulate.test")
	if out, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		return "does not build", fmt.Errorf("%v\n%s", err, out)
	}
	cmd := exec.Command(binary, "-test.run", "TestHistories", "-test.cpu", "1", "-test.timeout", "0",
		"-first", "-seed", fmt.Sprint(*seed), "-histories", fmt.Sprint(*mutantLimit))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	switch at := found.FindStringSubmatch(string(out)); {
	case at != nil:
		return fmt.Sprintf("%6s histories: %s", at[2], at[1]), nil
	case err != nil: // a data race, a panic on a goroutine, or time that does not pass
		line, _, _ := strings.Cut(string(out), "\n")
		return "the process ends: " + line, nil
	}
	return "not found", fmt.Errorf("not found within %d histories", *mutantLimit)
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
