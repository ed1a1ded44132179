package command

import (
	"runtime/debug"
	"strings"

	"github.com/culvert-go/culvert/nginx"
)

// path is the module whose version -v prints.
const path = "github.com/culvert-go/culvert/nginx"

// version is the output of -v, in nginx's form, so that tools can parse it: the version of nginx whose behaviour culvert has,
// and culvert's own where a build of nginx has its name.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return "nginx version: " + nginx.Emulated + " (culvert/" + versionIn(info) + ")"
}

// versionIn returns the version of this module that a program was built with, without its v: the
// program's own if it is culvert-nginx, or that of a dependency. It is devel for a build in a clone
// that has no version, and for a nil info.
func versionIn(info *debug.BuildInfo) string {
	if info == nil {
		return "devel"
	}
	for _, module := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if module.Path != path {
			continue
		}
		if number, ok := strings.CutPrefix(module.Version, "v"); ok {
			return number
		}
	}
	return "devel" // "(devel)", for instance
}
