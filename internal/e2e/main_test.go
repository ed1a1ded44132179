package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
		return program, build(program, dir, pkg, "GOWORK=") // the workspace, if the folder is in it
	})
}

// build builds a package of a folder's module, without the race detector, in the workspace of the folder or
// with "GOWORK=off".
func build(program, dir, pkg, work string) error {
	build := exec.Command("go", "build", "-o", program, pkg)
	build.Dir = dir
	build.Env = append(os.Environ(), work)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", filepath.Base(program), err, out)
	}
	return nil
}
