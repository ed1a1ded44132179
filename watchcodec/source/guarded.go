package source

import "github.com/culvert-go/culvert/watchcodec"

// guarded is a Sink of which a panic is that of Run. Most of its methods are called while the handler responds, of which a panic
// is the server's failure.
type guarded struct {
	Sink
	s *Source
}

// guard is deferred by what calls a function of the user's while the handler responds. The panic ends the handler.
func (s *Source) guard() {
	if v := recover(); v != nil {
		if s.panicked == nil {
			value := v
			s.panicked = &value
		}
		panic(v)
	}
}

// Set serves the source.
func (g guarded) Set(o *watchcodec.Object) error {
	defer g.s.guard()
	return g.Sink.Set(o)
}

// Delete serves the source.
func (g guarded) Delete(o *watchcodec.Object) error {
	defer g.s.guard()
	return g.Sink.Delete(o)
}

// Replaced serves the source.
func (g guarded) Replaced(c Collection) {
	defer g.s.guard()
	g.Sink.Replaced(c)
}

// Found serves the source.
func (g guarded) Found() {
	defer g.s.guard()
	g.Sink.Found()
}
