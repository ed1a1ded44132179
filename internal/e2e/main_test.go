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
	dir, err := os.MkdirTemp("", "culvert-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	culvertNginx = filepath.Join(dir, "nginx")
	build := exec.Command("go", "build", "-o", culvertNginx, "./nginx")
	build.Dir = "../../examples"
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the nginx example: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
