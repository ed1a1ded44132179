package main

import (
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
)

// profileVariable names a folder in which each process of this program writes a profile of
// its processor time, under its peer's name.
const profileVariable = "CULVERT_BENCH_PROFILE"

// profile starts a profile, if the flags request one.
func profile(name string) (stop func(), err error) {
	dir := os.Getenv(profileVariable)
	if dir == "" {
		return func() {}, nil
	}
	f, err := os.Create(filepath.Join(dir, strings.NewReplacer("/", "_", " ", "_", ",", "").Replace(name)+".pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}
