package upstream

import (
	"errors"
	"net/http"
)

// Balance is a way to pick among targets that can be asked. Use one of this
// package's functions.
type Balance interface {
	// check says what is wrong with the balance or the targets.
	check(targets []Target) error
	// over prepares the picking among members, of which there is at least one.
	// before is what picked among those of the set before, nil if there were none:
	// turns that were taken then count.
	over(members []*member, before picker) picker
}

// picker picks among the members of one tier. It is safe for concurrent use.
type picker interface {
	// pick claims a member that was not tried; nil if there is none.
	pick(q query) *member
}

// releaser is a picker that must know when a member has one request less.
type releaser interface{ released(m *member) }

// failureCounter is a picker that must know which of its members fail.
type failureCounter interface{ targetFailed(m *member) }

// cookieGiver is a picker that knows a client again by a cookie.
type cookieGiver interface {
	cookie(r *http.Request, m *member) *http.Cookie
}

// query is what a pick may look at.
type query struct {
	r     *http.Request
	tried []Lease
	how   admission
}

// claim claims m unless it was tried.
func (q query) claim(m *member) bool {
	return !q.wasTried(m) && m.claim(q.how)
}

func (q query) wasTried(m *member) bool {
	for _, l := range q.tried {
		if l.m.Addr == m.Addr { // not its state, which may be another one where it left the set meanwhile
			return true
		}
	}
	return false
}

// noBackup is the check of a balance that gives each client its own target.
func noBackup(targets []Target, name string) error {
	for _, t := range targets {
		if t.Backup {
			return errors.New("target \"" + t.Addr + "\": a backup is not possible with " + name)
		}
	}
	return nil
}
