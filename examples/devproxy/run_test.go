package main

import (
	"context"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// The program serves, with backends of its own, until its context ends.
func TestRun(t *testing.T) {
	leaktest.Check(t)
	listen, target := wiretest.Free(t), wiretest.Free(t)
	rules := write(t, "rules.yaml", "listen: "+listen+"\nproxy: {/api: 'http://TARGET'}", target)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	announced := make(lines, 64)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"-c", rules, "-backends"}, announced) }()
	if line := wiretest.Await(t, announced, "announcement"); line != "devproxy on http://"+listen+"\n" {
		t.Errorf("announced %q", line)
	}
	client := wiretest.Dial(t, listen)
	client.Send("GET /api/x HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, body := client.Response("GET"); body != "received GET /api/x for a\n" {
		t.Errorf("response %q", body)
	}
	if err := run(ctx, []string{"-c", rules}, announced); err == nil || !strings.Contains(err.Error(), `address already in use (another address: "listen" in the rules)`) {
		t.Errorf("a busy address: %v", err)
	}
	cancel()
	if err := wiretest.Await(t, ended, "end"); err != nil {
		t.Error(err)
	}
	if err := run(ctx, nil, announced); err == nil || !strings.HasPrefix(err.Error(), "which rules?") {
		t.Errorf("no rules: %v", err)
	}
}

type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
