package upstream_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/upstream"
)

var seedFlag = flag.Uint64("seed", 0, "the seed of the random histories; 0 means another one each time")

func newRandom() (random *rand.Rand, seed uint64) {
	seed = *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	return rand.New(rand.NewPCG(seed, 0)), seed
}

// outcomes are the outcomes of a request to the target under test, by its letter in a history.
var outcomes = map[byte]upstream.Outcome{
	's': {Status: 200},
	'f': {Err: errors.New("broken")},
}

// history sends one request a letter of steps ('f' fails, 's' succeeds, '.' is a second without a
// request) and returns steps with 'x' for each request that target a did not get.
func history(t *testing.T, a upstream.Target, steps string) string {
	return historyOf(t, upstream.Options{Balance: upstream.First()}, a, steps)
}

func historyOf(t *testing.T, o upstream.Options, a upstream.Target, steps string) string {
	p := newPicks(t, o, a, upstream.Target{Addr: "b:1"})
	got := make([]byte, 0, len(steps))
	for i := range len(steps) {
		if steps[i] == '.' {
			time.Sleep(time.Second)
			got = append(got, '.')
			continue
		}
		l := p.lease()
		if name(l) != "a" {
			l.Done(upstream.Outcome{Status: 200})
			got = append(got, 'x')
			continue
		}
		l.Done(outcomes[steps[i]])
		got = append(got, steps[i])
	}
	return string(got)
}

// MaxFails failures within FailTimeout take a target out; older ones do not count. The column nginx is
// the result of nginx's algorithm with max_fails=3 and fail_timeout=10s, if it differs.
func TestFailuresWithinFailTimeout(t *testing.T) {
	for _, test := range []struct{ steps, want, nginx string }{
		{"fffs", "fffx", "fffx"},
		{"fsfsfs", "fsfsfx", "fsfsfx"}, // a success in between changes nothing
		{"f...........sf...........sfs", "f...........sf...........sfs", ""}, // three far apart
		{"fs...........fs...........fs", "fs...........fs...........fs", "fs...........fs...........fx"},
		{"f...........f...........fs", "f...........f...........fs", "f...........f...........fx"},
		{"f.........f.........fs", "f.........f.........fs", "f.........f.........fx"}, // never three within ten seconds
		{"f.....f.....fs", "f.....f.....fx", ""},                                       // the first is ten seconds old
		{"fff..........s.ss", "fff..........x.ss", ""},
		{"fff...........f..........x.ss", "fff...........f..........x.ss", ""}, // the one attempt fails
		{"fff...........sffs", "fff...........sffs", ""},                       // the one attempt succeeds, and the count begins anew
		{"fff...........sfffs", "fff...........sfffx", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := upstream.Target{Addr: "a:1", MaxFails: 3, FailTimeout: 10 * time.Second}
			if got := history(t, a, test.steps); got != test.want {
				t.Errorf("history %s:\n got %s\nwant %s", test.steps, got, test.want)
			}
			nginx := test.nginx
			if nginx == "" {
				nginx = test.want
			}
			if got := nginxHistory(3, 10, test.steps); got != nginx {
				t.Errorf("history %s:\nnginx's %s\n   want %s", test.steps, got, nginx)
			}
		})
	}
}

// nginxHistory computes history by nginx's rule (ngx_http_upstream_get_peer and
// ngx_http_upstream_free_round_robin_peer), whose time is in seconds.
func nginxHistory(maxFails, failTimeout int, steps string) string {
	now, fails, accessed, checked := 1<<20, 0, 0, 0
	got := []byte(steps)
	for i, step := range got {
		switch {
		case step == '.':
			now++
			continue
		case fails >= maxFails && now-checked <= failTimeout:
			got[i] = 'x'
			continue
		}
		if now-checked > failTimeout {
			checked = now
		}
		switch {
		case step == 'f':
			fails++
			accessed, checked = now, now
		case accessed < checked:
			fails = 0
		}
	}
	return string(got)
}

// windowModel is the simplest implementation of Target.MaxFails.
type windowModel struct {
	max      int
	timeout  time.Duration
	failures []time.Time
	out      bool
	since    time.Time // the last failure, or the last request after it
}

func (m *windowModel) usable() bool { return !m.out || time.Since(m.since) > m.timeout }

func (m *windowModel) failed() {
	now := time.Now()
	m.since = now
	m.failures = append(m.failures, now)
	within := 0
	for _, at := range m.failures {
		if now.Sub(at) <= m.timeout {
			within++
		}
	}
	m.out = m.out || within >= m.max
}

func (m *windowModel) succeeded() {
	if m.out {
		m.out, m.failures = false, nil
	}
}

// A target is picked as windowModel allows over random histories.
func TestMaxFailsModel(t *testing.T) {
	random, seed := newRandom()
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			m := &windowModel{max: 1 + random.IntN(4), timeout: time.Duration(1+random.IntN(8)) * time.Second}
			p := newPicks(t, upstream.Options{Balance: upstream.First()},
				upstream.Target{Addr: "a:1", MaxFails: m.max, FailTimeout: m.timeout}, upstream.Target{Addr: "b:1"})
			badness := random.Float64()
			for step := range 100 {
				time.Sleep(time.Duration(random.IntN(5)) * time.Second)
				l := p.lease()
				if got := name(l) == "a"; got != m.usable() {
					t.Fatalf("seed %d, step %d: a was picked: %v, want %v (MaxFails %d, FailTimeout %v)", seed, step, got, m.usable(), m.max, m.timeout)
				}
				switch {
				case name(l) != "a":
					l.Done(outcomes['s'])
				case random.Float64() < badness:
					m.failed()
					l.Done(outcomes['f'])
				default:
					m.succeeded()
					l.Done(outcomes['s'])
				}
			}
		})
	}
}

// Status.Fails is the number of failures that count, 0 for a target whose failures do not count.
func TestStatusFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{}, upstream.Target{Addr: "a:1", MaxFails: 3}, upstream.Target{Addr: "b:1", MaxFails: -1})
		fails := func(wantA, wantB int) {
			t.Helper()
			for s := range p.g.Targets() {
				if want := map[string]int{"a:1": wantA, "b:1": wantB}[s.Target.Addr]; s.Fails != want {
					t.Errorf("%s has %d failures, want %d", s.Target.Addr, s.Fails, want)
				}
			}
		}
		fail := func() { p.lease().Done(outcomes['f']); p.lease().Done(outcomes['f']) }
		fail()
		time.Sleep(6 * time.Second)
		fail()
		fails(2, 0)
		time.Sleep(6 * time.Second)
		fails(1, 0)
		time.Sleep(6 * time.Second)
		fails(0, 0)
	})
}

// The time for which a target is out grows with each time in a row, up to MaxFailTimeout, and shrinks again.
func TestMaxFailTimeout(t *testing.T) {
	type step struct {
		after time.Duration
		what  byte // f, s: the outcome of a request that a gets; x: a gets none
	}
	const s, eps = time.Second, time.Nanosecond
	for what, test := range map[string]struct {
		most  time.Duration
		steps []step
	}{
		"none":          {0, []step{{0, 'f'}, {10 * s, 'x'}, {eps, 'f'}, {10 * s, 'x'}, {eps, 'f'}, {10*s + eps, 's'}, {0, 'f'}, {10*s + eps, 's'}}},
		"shorter":       {5 * s, []step{{0, 'f'}, {10 * s, 'x'}, {eps, 'f'}, {10*s + eps, 'f'}, {10*s + eps, 's'}}},
		"up to":         {25 * s, []step{{0, 'f'}, {10*s + eps, 'f'}, {20 * s, 'x'}, {eps, 'f'}, {25 * s, 'x'}, {eps, 'f'}, {25 * s, 'x'}, {eps, 's'}}},
		"back at once":  {time.Hour, []step{{0, 'f'}, {10*s + eps, 's'}, {0, 'f'}, {20 * s, 'x'}, {eps, 's'}, {9 * s, 'f'}, {30 * s, 'x'}, {eps, 's'}}},
		"back for long": {time.Hour, []step{{0, 'f'}, {10*s + eps, 'f'}, {20*s + eps, 's'}, {10 * s, 'f'}, {20 * s, 'x'}, {eps, 's'}, {time.Hour, 'f'}, {10*s + eps, 's'}}},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPicks(t, upstream.Options{Balance: upstream.First(), MaxFailTimeout: test.most}, addrs("a b")...)
				for i, step := range test.steps {
					time.Sleep(step.after)
					l := p.lease()
					if (name(l) == "b") != (step.what == 'x') {
						t.Fatalf("step %d: leased %s", i, name(l))
					}
					if step.what == 'f' {
						l.Done(outcomes['f'])
					} else {
						l.Done(outcomes['s'])
					}
				}
			})
		})
	}
}

// Failures of requests that were sent before the target was taken out do not count as another time, though they begin the
// time anew; that of the request which was let through does.
func TestLateFailuresDoNotGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPicks(t, upstream.Options{Balance: upstream.First(), MaxFailTimeout: time.Hour}, addrs("a b")...)
		late := []upstream.Lease{p.lease(), p.lease(), p.lease()}
		p.lease().Done(outcomes['f'])
		for _, l := range late {
			time.Sleep(time.Second)
			l.Done(outcomes['f'])
		}
		time.Sleep(10 * time.Second)
		p.want("b")
		time.Sleep(time.Nanosecond)
		p.broken["a"] = true
		p.want("a b")
		time.Sleep(20 * time.Second)
		p.want("b")
		time.Sleep(time.Nanosecond)
		p.want("a b")
	})
}

// Checks that bring a target back begin anew.
func TestChecksResetFailTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probes := &probed{status: map[string]int{"a": 200, "b": 200}}
		p := newPicks(t, upstream.Options{Balance: upstream.First(), MaxFailTimeout: time.Hour, Transport: probes,
			Check: &upstream.Check{Path: "/", Jitter: -1, Fall: 1, Rise: 1, Interval: time.Second}}, addrs("a b")...)
		p.broken["a"] = true
		p.want("a b")
		time.Sleep(10*time.Second + 1)
		p.want("a b") // 20 seconds
		probes.set("a", 500)
		time.Sleep(2 * time.Second)
		probes.set("a", 200)
		time.Sleep(2 * time.Second)
		p.want("a b")
		time.Sleep(10*time.Second + 1)
		p.want("a b")
	})
}
