package simulate

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var worker = flag.Bool("worker", false, "(of a process that a run with several workers starts) send counts, and end with standard input")

// countsLine begins a line in which a worker sends its counts.
const countsLine = "counts: "

// send sends the counts to the parent process, unless it did so less than every ago.
func (c *counts) send(every time.Duration) {
	if time.Since(c.reported) < every {
		return
	}
	c.reported = time.Now()
	p, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s%s\n", countsLine, p)
}

// TestWorker runs a worker's share of histories.
func TestWorker(t *testing.T) {
	if !*worker {
		return
	}
	var ended atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	}()
	c := counts{stopped: ended.Load}
	runHere(t, *workers, &c)
	c.send(0)
}

// runWorkers distributes the histories to n processes: each runs every nth seed.
func runWorkers(t *testing.T, n int, c *counts) {
	all := make([]*process, n)
	var wg sync.WaitGroup
	for i := range all {
		all[i] = startWorker(t, i, n)
	}
	broken := func() {
		for _, p := range all {
			p.stop()
		}
	}
	for _, p := range all {
		wg.Go(func() { p.follow(t, broken) })
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			sum := counts{begun: c.begun, reported: c.reported}
			sum.sumAll(all)
			sum.progress()
			c.reported = sum.reported
		case <-ended:
			c.sumAll(all)
			return
		}
	}
}

// sumAll adds the counts of the workers.
func (c *counts) sumAll(all []*process) {
	for _, p := range all {
		p.mu.Lock()
		c.sum(p.counts)
		p.mu.Unlock()
	}
}

// process is a worker.
type process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	once sync.Once

	mu     sync.Mutex
	counts *counts
}

// startWorker starts the ith of n workers.
func startWorker(t *testing.T, i, n int) *process {
	t.Helper()
	p := &process{counts: new(counts), cmd: exec.Command(os.Args[0], "-test.run=^TestWorker$", "-test.timeout=0", "-worker",
		fmt.Sprint("-workers=", n), fmt.Sprint("-seed=", *seed+uint64(i)), fmt.Sprint("-histories=", *histories-i),
		fmt.Sprint("-shrink=", *shrink), fmt.Sprint("-keep=", *keep), fmt.Sprint("-threads=", *threads), fmt.Sprint("-twice=", *twice),
		fmt.Sprint("-test.v=", testing.Verbose()))}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	return p
}

// stop makes the worker end after the history that it runs.
func (p *process) stop() { p.once.Do(func() { p.in.Close() }) }

// follow reads what the worker prints until it has ended, and calls broken when a rule broke.
func (p *process) follow(t *testing.T, broken func()) {
	lines := bufio.NewReader(p.out)
	for {
		text, err := lines.ReadString('\n')
		if of, ok := strings.CutPrefix(text, countsLine); ok {
			p.read(t, of, broken)
		} else if text != "PASS\n" && !strings.HasPrefix(text, "=== RUN") && !strings.HasPrefix(text, "--- PASS") {
			fmt.Print(text)
		}
		if err != nil {
			break
		}
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("a worker: %v", err)
		if !*keep {
			broken()
		}
	}
}

// read reads a line of counts.
func (p *process) read(t *testing.T, text string, broken func()) {
	c := new(counts)
	if err := json.Unmarshal([]byte(text), c); err != nil {
		t.Errorf("a worker: %v", err)
		return
	}
	p.mu.Lock()
	p.counts = c
	p.mu.Unlock()
	if c.over() {
		broken()
	}
}
