package command

import (
	"runtime/debug"
	"testing"
)

func TestVersionOfTheModule(t *testing.T) {
	other := debug.Module{Path: "example.com/gateway", Version: "v9.9.9"}
	for name, test := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"no information":      {nil, "devel"},
		"installed":           {&debug.BuildInfo{Main: debug.Module{Path: path, Version: "v1.2.3"}}, "1.2.3"},
		"a clone":             {&debug.BuildInfo{Main: debug.Module{Path: path, Version: "(devel)"}}, "devel"},
		"in another program":  {&debug.BuildInfo{Main: other, Deps: []*debug.Module{&other, {Path: path, Version: "v1.2.3"}}}, "1.2.3"},
		"a workspace":         {&debug.BuildInfo{Main: other, Deps: []*debug.Module{{Path: path, Version: "(devel)"}}}, "devel"},
		"without this module": {&debug.BuildInfo{Main: other}, "devel"},
	} {
		if got := versionIn(test.info); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
