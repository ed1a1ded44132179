package http1

import "slices"

// idlePrefaced are the idle connections with a preface by their target's address without it, those idle longest first. MaxIdle
// bounds those of a target together: there may be one for each client, and most clients do not come back.
type idlePrefaced map[Addr][]*Conn

func (a Addr) withoutPreface() Addr {
	a.Preface = ""
	return a
}

// add adds c, which is the last one that has become idle, and returns the one to close in its place if there are more than most.
func (m idlePrefaced) add(c *Conn, most int) (over *Conn) {
	target := c.addr.withoutPreface()
	list := append(m[target], c)
	if len(list) > most {
		over = list[0]
		list = slices.Delete(list, 0, 1)
	}
	m[target] = list
	return over
}

// remove removes what is not idle any more.
func (m idlePrefaced) remove(conns ...*Conn) {
	for _, c := range conns {
		if c.addr.Preface == "" {
			return // all are of one address
		}
		target := c.addr.withoutPreface()
		list := m[target]
		i := slices.Index(list, c)
		switch {
		case i < 0:
		case len(list) == 1:
			delete(m, target)
		default:
			m[target] = slices.Delete(list, i, i+1)
		}
	}
}
