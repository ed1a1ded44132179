package netloop

import (
	"net"
	"os"
	"syscall"
)

// EdgeTriggered is EPOLLET without the sign that package syscall gives it.
const EdgeTriggered = 1 << 31

// Event is what has happened to a descriptor.
type Event struct {
	// Mask holds the bits of epoll_ctl(2): EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR.
	Mask uint32
	slot uint32
	of   uint32 // the registration's generation
}

// Handler handles the events of a descriptor. It is called on the loop, which serves no other
// member meanwhile: it must not block.
type Handler interface {
	// Handle is called with each event that its descriptor is watched for.
	Handle(l *Loop, e Event)
}

// Registration is one call of Add. The zero value is none.
type Registration struct {
	fd         int32
	slot       uint32
	generation uint32
}

// slot is a place of the table. The kernel returns its number with each event, and the generation of
// the registration: events of a former one may still have to be handled when the place, or the
// descriptor's number, has been given to another member.
//
// The table is not one by descriptor, since each of many loops would have a place for each
// descriptor of the process.
type slot struct {
	handler    Handler
	generation uint32 // 0: the place is free
}

// Add makes the loop call h with the events of fd that mask selects, from now on. If there is one
// already, h is called at once. Nothing is added if the error is not nil.
//
// Before fd is closed, Remove must be called.
func (l *Loop) Add(fd int, mask uint32, h Handler) (Registration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(fd, mask, h)
}

// add is Add for a caller that holds mu.
func (l *Loop) add(fd int, mask uint32, h Handler) (Registration, error) {
	if !l.running {
		if err := l.start(); err != nil {
			return Registration{}, err
		}
	}
	if l.generation++; l.generation == 0 {
		l.generation = 1
	}
	r := Registration{int32(fd), l.freeSlot(), l.generation}
	if err := l.control(syscall.EPOLL_CTL_ADD, r, mask); err != nil {
		l.free = append(l.free, r.slot)
		return Registration{}, err
	}
	l.slots[r.slot] = slot{h, r.generation}
	l.members++
	return r, nil
}

// freeSlot takes a place of the table. The caller holds mu.
func (l *Loop) freeSlot() uint32 {
	if n := len(l.free); n > 0 {
		i := l.free[n-1]
		l.free = l.free[:n-1]
		return i
	}
	l.slots = append(l.slots, slot{})
	return uint32(len(l.slots) - 1)
}

// Modify changes the events of a registration. There is one also for what is so already. The error
// is net.ErrClosed if r has been removed.
func (l *Loop) Modify(r Registration, mask uint32) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.has(r) {
		return net.ErrClosed
	}
	return l.control(syscall.EPOLL_CTL_MOD, r, mask)
}

// Remove undoes Add. A call of the handler that the loop has begun may still run, and is the last
// one. Remove does nothing if r has been removed.
func (l *Loop) Remove(r Registration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.has(r) {
		// Closing fd would not do it while the socket has another descriptor.
		_ = l.control(syscall.EPOLL_CTL_DEL, r, 0)
		l.release(r)
	}
}

// release frees r's place in the table. The caller holds mu.
func (l *Loop) release(r Registration) {
	l.slots[r.slot] = slot{}
	l.free = append(l.free, r.slot)
	if l.members--; l.members == 0 {
		l.wake() // no event would, and the loop is to end
	}
}

// has reports whether r has not been removed. The caller holds mu.
func (l *Loop) has(r Registration) bool {
	return r.generation != 0 && int(r.slot) < len(l.slots) && l.slots[r.slot].generation == r.generation
}

// handler returns the handler of the event, nil if it has been removed.
func (l *Loop) handler(e Event) Handler {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.has(Registration{slot: e.slot, generation: e.of}) {
		return l.slots[e.slot].handler
	}
	return nil
}

// control calls epoll_ctl. The kernel does not interpret what it returns with an event, so the field
// named Fd holds the slot.
func (l *Loop) control(operation int, r Registration, mask uint32) error {
	event := syscall.EpollEvent{Events: mask, Fd: int32(r.slot), Pad: int32(r.generation)}
	return os.NewSyscallError("epoll_ctl", l.set.control(l.epoll, operation, int(r.fd), &event))
}

func eventOf(e *syscall.EpollEvent) Event { return Event{e.Events, uint32(e.Fd), uint32(e.Pad)} }
