package simulate

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// mirrorKind copies requests to a second handler, which changes nothing for their clients.
var mirrorKind = filterKind{
	name: "Mirror",
	make: func(g *gateway, p FilterPlan) (culvert.Filter, error) {
		c := &copies{g: g, slow: p.B, timeout: g.plan.takes(30 * time.Second), most: 64, seen: map[uint32]int{}}
		if p.A == 3 {
			c.timeout = g.plan.takes(2 * time.Second)
		}
		o := filters.MirrorOptions{To: c, Timeout: c.timeout}
		switch p.A {
		case 1:
			o.MaxInFlight, c.most = 1, 1
		case 2:
			o.MaxBody = 1000
		}
		m, err := filters.NewMirror(o)
		if err != nil {
			return nil, err
		}
		g.closers = append(g.closers, func() { c.end(m) })
		return func(next http.Handler) http.Handler {
			mirrored := m.Filter(next)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !opensTunnel(r) {
					c.passed()
				}
				mirrored.ServeHTTP(w, r)
			})
		}, nil
	},
}

// copies receives a Mirror's copies.
type copies struct {
	g       *gateway
	slow    int // how slowly the handler responds
	timeout time.Duration
	most    int

	mu       sync.Mutex
	requests int // that passed the Mirror
	running  int
	ended    bool
	seen     map[uint32]int
	total    int
}

func (c *copies) passed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
}

// begin records a copy.
func (c *copies) begin(token uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running++
	c.total++
	c.seen[token]++
	switch {
	case c.ended:
		c.g.journal.Break("mirror", "#%d is copied after Close", token)
	case c.running > c.most:
		c.g.journal.Break("mirror", "%d copies at a time, at most %d are allowed", c.running, c.most)
	case token > 0 && c.seen[token] > 1:
		c.g.journal.Break("mirror", "#%d is copied %d times", token, c.seen[token])
	}
}

// ServeHTTP checks that a copy is that of a request, and whole.
func (c *copies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	token, _ := tokenOf(r.URL.EscapedPath())
	c.begin(token)
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		if took := time.Since(begun); took > c.timeout && c.g.plan.exact() {
			c.g.journal.Break("mirror", "a copy took %v, of %v", took, c.timeout)
		}
	}()
	if e := c.g.exchange(token); e != nil {
		check := &Checker{Content: e.requestBody()}
		n, err := e.readRequest(check, r)
		if err != nil || check.Err() != nil || check.Got != e.Body.Length || n != r.ContentLength || r.Method != e.Method && !(e.Kube == KubeObject && e.Method == http.MethodHead) {
			c.g.journal.Break("mirror", "#%d: %s with %d bytes of %d is no whole copy: %v, %v", token, r.Method, check.Got, e.Body.Length, err, check.Err())
		}
	}
	switch c.slow {
	case 1:
		<-r.Context().Done()
	case 2:
		time.Sleep(c.g.plan.takes(time.Second))
	case 3:
		panic("the mirror's handler fails")
	case 4:
		_, _ = io.CopyN(w, zeros{}, 100_000)
	}
}

// zeros is a reader of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// end closes the mirror and checks the counts.
func (c *copies) end(m *filters.Mirror) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := m.Close(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.g.journal.effects.Add("Mirror", c.total)
	c.g.journal.effects.Add("Mirror drops", int(m.Dropped()))
	if err != nil || c.running > 0 || c.total+int(m.Dropped()) != c.requests {
		c.g.journal.Break("mirror", "of %d requests %d were copied, %d dropped, %d run after Close: %v", c.requests, c.total, m.Dropped(), c.running, err)
	}
}

// exchange returns the exchange of a token, nil if there is none.
func (g *gateway) exchange(token uint32) *ExchangePlan {
	for i := range g.plan.Clients {
		for k := range g.plan.Clients[i].Requests {
			if e := &g.plan.Clients[i].Requests[k]; e.Token == token {
				return e
			}
		}
	}
	return nil
}
