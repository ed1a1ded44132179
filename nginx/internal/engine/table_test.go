package engine_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// The directives that the parser accepts as implemented are those that the engine compiles.
func TestDirectivesAreThoseOfTheParser(t *testing.T) {
	got := engine.Directives()
	slices.Sort(got)
	if want := conf.Supported(); !slices.Equal(got, want) {
		t.Errorf("the engine compiles\n%q\nthe parser says\n%q", got, want)
	}
}

// README.md has the table of all directives that the code describes.
func TestReadmeTable(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), conf.TableBegins)
	table, _, found := strings.Cut(table, conf.TableEnds)
	if !found {
		t.Fatal("the README has no table")
	}
	if table != conf.Table() {
		t.Error("the table is not the code's: go generate ./nginx/conf")
	}
}
