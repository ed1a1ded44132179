package engine_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/examples/nginx/conf"
	"github.com/culvert-go/culvert/examples/nginx/engine"
)

// What the parser lets pass as implemented is what the engine compiles.
func TestDirectivesAreThoseOfTheParser(t *testing.T) {
	got := engine.Directives()
	slices.Sort(got)
	if want := conf.Supported(); !slices.Equal(got, want) {
		t.Errorf("the engine compiles\n%q\nthe parser says\n%q", got, want)
	}
}

// The example's README lists what is implemented, no more and no less.
func TestReadmeListsDirectives(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "- **Implemented**")
	list, _, found := strings.Cut(list, "- **A no-op**")
	if !found {
		t.Fatal("the README has no list")
	}
	var got []string
	for _, name := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(list, -1) {
		got = append(got, name[1])
	}
	if want := conf.Supported(); !slices.Equal(got, want) {
		t.Errorf("the README lists\n%q\nthe parser says\n%q", got, want)
	}
}
