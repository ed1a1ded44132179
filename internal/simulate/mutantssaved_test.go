package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"testing"
)

// verdicts are kept in a file, so that the mutants can be run in several parts. A verdict counts as long as its
// mutant's text is the same; what became of the product meanwhile is the caller's business.
type verdicts struct {
	path string // "": none are kept
	mu   sync.Mutex
	all  map[string]*verdict // by the mutant's name
}

// loadVerdicts reads the file, if there is one.
func loadVerdicts(t *testing.T, path string) *verdicts {
	s := &verdicts{path: path, all: map[string]*verdict{}}
	if path == "" {
		return s
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s
	}
	if err == nil {
		err = json.Unmarshal(text, &s.all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// verdict returns what is known of a mutant.
func (s *verdicts) verdict(m *mutant) *verdict {
	if v := s.all[m.name]; v != nil && v.Old == m.old && v.New == m.new {
		v.mutant = m
		return v
	}
	return &verdict{mutant: m, Name: m.name, Old: m.old, New: m.new}
}

// keep writes a verdict down.
func (s *verdicts) keep(v *verdict) {
	if s.path == "" || v.err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[v.Name] = v
	text, err := json.MarshalIndent(s.all, "", "\t")
	if err == nil {
		err = os.WriteFile(s.path, text, 0o600)
	}
	if err != nil {
		fmt.Println(err) // the table has the verdict
	}
}
