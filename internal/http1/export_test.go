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
