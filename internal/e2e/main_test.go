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
	if os.Getenv(grpcCase) != "" {
		os.Exit(runGRPCCase())
	}
	if os.Getenv(asKubectl) != "" {
		os.Exit(runKubectl())
	}
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
	culvertNginx = filepath.Join(programs, "nginx")
	build := exec.Command("go", "build", "-o", culvertNginx, "./nginx")
	build.Dir = "../../examples"
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the nginx example: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// edgeProgram is the edge example, built when it is needed first.
var edgeProgram = sync.OnceValues(func() (string, error) {
	program := filepath.Join(programs, "edge")
	build := exec.Command("go", "build", "-o", program, "./edge")
	build.Dir = "../../examples"
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the edge example: %w\n%s", err, out)
	}
	return program, nil
})
