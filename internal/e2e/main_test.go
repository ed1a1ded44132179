package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// culvertNginx is the nginx example, built once.
var culvertNginx string

// programs is the folder of what tests build.
var programs string

func TestMain(m *testing.M) {
	if os.Getenv(asPod) != "" {
		os.Exit(runPod())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	programs, err = os.MkdirTemp("", "culvert-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(programs)
	if culvertNginx, err = built("nginx", "../../examples", "./nginx")(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// edgeProgram is the edge example.
var edgeProgram = built("edge", "../../examples", "./edge")

// built returns what builds a package of a folder's module when it is needed first, once for
// all tests.
func built(name, dir, pkg string) func() (program string, err error) {
	return sync.OnceValues(func() (string, error) {
		program := filepath.Join(programs, name)
		return program, build(program, dir, pkg)
	})
}

// build builds a package of a folder's module, without the race detector.
func build(program, dir, pkg string) error {
	build := exec.Command("go", "build", "-o", program, pkg)
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", filepath.Base(program), err, out)
	}
	return nil
}

// kept is built for a program that has nothing of culvert in it: it is kept in the user's cache directory, as long as the files
// that the patterns match, the Go version and its flags are the same.
func kept(name, dir, pkg string, patterns ...string) func() (program string, err error) {
	return sync.OnceValues(func() (string, error) {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		sum := sha256.New()
		fmt.Fprintln(sum, runtime.Version(), os.Getenv("GOFLAGS"))
		for _, pattern := range patterns {
			files, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil || len(files) == 0 {
				return "", fmt.Errorf("%s is made of no %s (%v)", name, pattern, err)
			}
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					return "", err
				}
				fmt.Fprintf(sum, "%s %d\n%s", file, len(content), content)
			}
		}
		program := filepath.Join(cache, "culvert-e2e", fmt.Sprintf("%s-%.8x", name, sum.Sum(nil)))
		if _, err := os.Stat(program); err == nil {
			return program, nil
		}
		made := filepath.Join(programs, name)
		if err := errors.Join(build(made, dir, pkg), os.MkdirAll(filepath.Dir(program), 0o755)); err != nil {
			return "", err
		}
		if os.Rename(made, program) != nil {
			return made, nil // it is on another file system: not kept
		}
		return program, nil
	})
}
