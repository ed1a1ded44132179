package http1

// Waiting is how many exchanges wait for a connection.
func (p *Pool) Waiting() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.waiting {
		n += len(list)
	}
	return n
}

// BodyOf returns a body of n bytes that is read from c.
func BodyOf(c *Conn, n int64) *Body {
	b := new(Body)
	b.start(c, framing{length: n}, nil)
	return b
}

// IdleAddrs returns for how many addresses p remembers idle connections, or that there were some.
func IdleAddrs(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
