package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// asProgram makes this test binary the program itself.
const asProgram = "CULVERT_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A demonstration whose address is in use names another one, and leaves no files behind.
func TestDemonstrationOfAnAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	busy, temporary := l.Addr().String(), t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe)
	c.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+temporary, "CULVERT_DEMO_ADDR="+busy)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	_ = c.Run()
	want := "nginx: [emerg] bind() to " + busy + " failed (98: Address already in use)\n" +
		"The demonstration wants " + busy + ". If something else listens there, stop it, or choose another address:\n" +
		"  CULVERT_DEMO_ADDR=127.0.0.1:8081 go run ./examples/nginx\n"
	if status := c.ProcessState.ExitCode(); status != 1 || stdout.Len() != 0 || stderr.String() != want {
		t.Errorf("status %d, %q %q, want %q", status, &stdout, &stderr, want)
	}
	if left, _ := filepath.Glob(filepath.Join(temporary, "*")); len(left) != 0 {
		t.Errorf("left %q behind", left)
	}
}
