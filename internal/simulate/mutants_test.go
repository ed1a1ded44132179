package simulate

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mutantsRun   = flag.String("mutants", "", "run the mutants whose names match this expression; . is all")
	mutantLimit  = flag.Int("limit", 20000, "how many histories a mutant may need")
	mutantsAt    = flag.Int("at-once", 2, "how many mutants run at the same time")
	mutantsSaved = flag.String("verdicts", "", "a file in which verdicts are kept, so that a later run continues there")
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

// TestMutants builds the simulator with one fault after the other, and prints the table: the mutant, within how
// many histories it is found, and the rule that finds it. All mutants run for a few histories before those that are
// left run for more.
func TestMutants(t *testing.T) {
	if *mutantsRun == "" {
		return // it takes long
	}
	wanted := regexp.MustCompile(*mutantsRun)
	r := newMutantRunner(t)
	for i := range mutants {
		if m := &mutants[i]; wanted.MatchString(m.name) {
			r.list = append(r.list, r.saved.verdict(m))
		}
	}
	for limit := 500; ; limit *= 5 {
		limit = min(limit, *mutantLimit)
		r.runAll(t.Context(), limit)
		if limit == *mutantLimit {
			break
		}
	}
	printTable(t, r.list)
}

// printTable prints all verdicts in the order of the mutants, and their counts.
func printTable(t *testing.T, list []*verdict) {
	found, most := 0, 0
	fmt.Printf("\n%-70s %6s %s\n", "mutant", "needed", "rule")
	for _, v := range list {
		fmt.Println(v)
		if v.Found == 0 {
			t.Errorf("%v", v)
			continue
		}
		found++
		most = max(most, v.Found)
	}
	fmt.Printf("%d of %d mutants found, each within %d histories\n", found, len(list), most)
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
