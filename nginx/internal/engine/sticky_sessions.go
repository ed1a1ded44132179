package engine

import (
	"container/list"
	"sync"
	"time"
)

// sessions are the servers of the sessions of a "sticky learn". It is safe for concurrent use.
type sessions struct {
	most    int
	timeout time.Duration

	mu     sync.Mutex
	byID   map[string]*list.Element
	recent list.List // of *session, the last used in front
}

type session struct {
	id, sid string
	used    time.Time
}

func newSessions(most int, timeout time.Duration) *sessions {
	return &sessions{most: most, timeout: timeout, byID: map[string]*list.Element{}}
}

func (s *sessions) setTimeout(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timeout = d
}

// server returns the server of a session, "" if it is not known.
func (s *sessions) server(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	if e := s.byID[id]; e != nil {
		return e.Value.(*session).sid
	}
	return ""
}

// store notes the server of a session, and that it is in use. A session that is not known is made if create is set.
func (s *sessions) store(id, sid string, create bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	e := s.byID[id]
	switch {
	case e != nil:
		s.recent.MoveToFront(e)
	case !create:
		return
	default:
		if s.recent.Len() >= s.most {
			s.remove(s.recent.Back())
		}
		e = s.recent.PushFront(&session{id: id})
		s.byID[id] = e
	}
	known := e.Value.(*session)
	known.sid, known.used = sid, time.Now()
}

// expire removes the sessions that were not in use for the timeout. The caller holds s.mu.
func (s *sessions) expire() {
	for e := s.recent.Back(); e != nil && time.Since(e.Value.(*session).used) >= s.timeout; e = s.recent.Back() {
		s.remove(e)
	}
}

func (s *sessions) remove(e *list.Element) {
	delete(s.byID, e.Value.(*session).id)
	s.recent.Remove(e)
}
