package simulate

// lateBytes is a connection over which a client of pipelined requests sends the last byte of one of them later than the rest.
// Before that the server has received all bytes of the request but one, while it serves the request before.
type lateBytes struct {
	duplex
	last []byte // not sent yet
}

// Write sends what was held back, and all of p but for the last byte.
func (b *lateBytes) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n := len(p)
	_, err := b.duplex.Write(append(b.last, p[:n-1]...))
	if err != nil {
		return 0, err
	}
	b.last = append(b.last[:0:0], p[n-1])
	return n, nil
}

// send sends what was held back.
func (b *lateBytes) send() error {
	last := b.last
	b.last = nil
	if len(last) == 0 {
		return nil
	}
	_, err := b.duplex.Write(last)
	return err
}

// CloseWrite implements duplex.
func (b *lateBytes) CloseWrite() error {
	if err := b.send(); err != nil {
		return err
	}
	return b.duplex.CloseWrite()
}

// sendPipelined sends the requests without waiting for responses. With ClientPlan.LateByte the last byte of each second one
// follows the others by that time, and the byte before them is sent together with them.
func (c *client) sendPipelined(conn duplex, list []ExchangePlan, outcomes []*Outcome) {
	late := &lateBytes{duplex: conn}
	for i := range list {
		to := conn
		if c.plan.LateByte > 0 && !list[i].Expect { // a server does not request the body of a header that is not whole
			to = late
		} else if late.send() != nil {
			return
		}
		if !c.send(to, &list[i], outcomes[i]) {
			return
		}
		if i%2 == 1 || i == len(list)-1 {
			c.world.sleep(c.plan.LateByte)
			if late.send() != nil {
				return
			}
		}
		outcomes[i].SentWhole = true
	}
}

// silent: a client of pipelined requests that has sent all of one of them receives a response, or the end of the connection.
func (r *ruler) silent() {
	if r.client.Pipelined && r.o.LeftAlone && r.o.SentWhole && r.o.Status == 0 && r.e.GiveUp == 0 && !r.faulty() {
		r.fail("silent", "no response within %v", r.w.longest)
	}
}
