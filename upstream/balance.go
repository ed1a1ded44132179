package upstream

import (
	"errors"
	"net/http"
)

// Balance selects a target from the group's available targets. Its
// implementations are this package's: RoundRobin, LeastConn, RandomTwo, First,
// Hash, HashModulo, IPHash, Sticky and Affinity, and BalanceFunc for a program's own.
type Balance interface {
	// check returns why the balance or the targets are invalid, nil if they are not.
	check(targets []Target) error
	// newPicker returns a picker among members, of which there is at least one. before
	// is the picker of the previous set, nil if there was none: the new picker
	// continues its turns.
	newPicker(members []*member, before picker) picker
}

// picker picks among the members of one tier. It is safe for concurrent use.
type picker interface {
	// pick acquires a member that was not tried; it returns nil if there is none.
	pick(q query) *member
}

// releaser is a picker that is notified when a member has one request less.
type releaser interface{ released(m *member) }

// failureCounter is a picker that is notified of its members' failures.
type failureCounter interface{ targetFailed(m *member) }

// cookieGiver is a picker that recognises clients by a cookie.
type cookieGiver interface {
	// cookie returns the cookie to send to the client of r, which m serves; nil for none.
	cookie(r *http.Request, m *member) *http.Cookie
}

// binder is a picker that binds requests to a target.
type binder interface {
	// binds reports whether r is bound to one target: to one that its client has a session with, perhaps.
	binds(r *http.Request) bool
}

// query holds the parameters of a pick.
type query struct {
	r     *http.Request
	tried []Lease
	how   admission

	beside bool // no target that failures have taken out: the outcome may not be known (package nested)
}

// acquire acquires m unless it was tried, and reports whether it did.
func (q query) acquire(m *member) bool {
	return !q.wasTried(m) && !(q.beside && m.failing()) && m.acquire(q.how)
}

func (q query) wasTried(m *member) bool {
	for _, l := range q.tried {
		if l.m.key() == m.key() { // not its state, which is another one if it has left the set meanwhile
			return true
		}
	}
	return false
}

// noBackup checks the targets of a balance that maps each client or key to a target of its own.
func noBackup(targets []Target, name string) error {
	for _, t := range targets {
		if t.Backup {
			return errors.New("target \"" + t.Addr + "\": a backup is not possible with " + name)
		}
	}
	return nil
}
