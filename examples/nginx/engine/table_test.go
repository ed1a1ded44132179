package engine_test

import (
	"slices"
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
