package source

import "github.com/culvert-go/culvert/watchcodec"

// guarded is a Sink whose panics are passed on to the caller of Run. Most of its methods are called
// while the handler responds, whose own panics are failures of the server.
type guarded struct {
	Sink
	s *Source
}

// guard is deferred by calls of the user's functions while the handler responds. It notes the
// panic, which then ends the handler.
func (s *Source) guard() {
	if v := recover(); v != nil {
		if s.panicked == nil {
			value := v
			s.panicked = &value
		}
		panic(v)
	}
}

// Set implements Sink.
func (g guarded) Set(o *watchcodec.Object) error {
	defer g.s.guard()
	return g.Sink.Set(o)
}

// Delete implements Sink.
func (g guarded) Delete(o *watchcodec.Object) error {
	defer g.s.guard()
	return g.Sink.Delete(o)
}

// Replaced implements Sink.
func (g guarded) Replaced(c Collection) {
	defer g.s.guard()
	g.Sink.Replaced(c)
}

// Found implements Sink.
func (g guarded) Found() {
	defer g.s.guard()
	g.Sink.Found()
}
