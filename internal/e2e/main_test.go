package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
