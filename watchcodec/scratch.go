package watchcodec

// scratch is the memory for the edits of an object: two buffers, of which one may hold the object.
// It returns only the other one, so that an edit can't overwrite what it reads, whichever of the
// edits before it have changed the object.
type scratch struct {
	buffers [2][]byte
	holds   int // the number of the buffer that holds the object, from 1; 0: neither does
}

// spare returns the index of a buffer that does not hold the object.
func (s *scratch) spare() int {
	if s.holds == 1 {
		return 1
	}
	return 0
}

// free returns an empty buffer that does not hold the object.
func (s *scratch) free() []byte { return s.buffers[s.spare()][:0] }

// keep stores the memory of p, which was appended to the buffer that free returned. If holds is
// true, p is the object from now on.
func (s *scratch) keep(p []byte, holds bool) {
	i := s.spare()
	s.buffers[i] = p[:0]
	if holds {
		s.holds = i + 1
	}
}
