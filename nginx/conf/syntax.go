package conf

import (
	crossplane "github.com/nginxinc/nginx-go-crossplane"
)

// Context is a set of blocks that a directive may stand in, joined by "|".
type Context uint8

const (
	// InHTTP is the block http.
	InHTTP Context = 1 << iota
	// InServer is the block of a server of http.
	InServer
	// InLocation is the block of a location.
	InLocation
	// InIf is the block of an if inside a location.
	InIf

	// InAny is all of them.
	InAny = InHTTP | InServer | InLocation | InIf
)

// Syntax is where a directive may stand that nginx does not have, and with how many arguments.
type Syntax struct {
	// Contexts are the blocks that it may stand in. Zero is http, server and location.
	Contexts Context
	// MinArgs is the least number of arguments.
	MinArgs int
	// MaxArgs is the greatest. If it is less than MinArgs, it is MinArgs; if it is negative, there is no limit.
	MaxArgs int
}

// contexts returns where the directive may stand.
func (s *Syntax) contexts() Context {
	if s.Contexts == 0 {
		return InHTTP | InServer | InLocation
	}
	return s.Contexts
}

// accepts reports whether the directive may have n arguments.
func (s *Syntax) accepts(n int) bool {
	return n >= s.MinArgs && (s.MaxArgs < 0 || n <= max(s.MinArgs, s.MaxArgs))
}

// contextMasks are crossplane's bits, which it does not export, of each Context. They are taken from directives of nginx's that
// differ by it.
var contextMasks = func() map[Context]uint {
	http := contextMask("limit_req_zone")
	server := contextMask("ignore_invalid_headers") &^ http
	location := contextMask("internal")
	return map[Context]uint{
		InHTTP: http, InServer: server, InLocation: location,
		InIf: contextMask("root") &^ (http | server | location),
	}
}()

// argumentMasks are the lower bits of crossplane's masks, which are about the number of arguments.
const argumentMasks = 1<<16 - 1

// contextMask returns the bits of a directive's contexts.
func contextMask(name string) (mask uint) {
	masks, _ := crossplane.MatchOssLatest(name)
	for _, m := range masks {
		mask |= m &^ argumentMasks
	}
	return mask
}

// anyArguments is crossplane's mask for any number of arguments: for none, and for one or more.
var anyArguments = func() uint {
	none, _ := crossplane.MatchOssLatest("internal")
	more, _ := crossplane.MatchOssLatest("index")
	return (none[0] | more[0]) & argumentMasks
}()

// matchSyntax is a crossplane.MatchFunc for the directives that have a Syntax. Their arguments are counted by checkSyntax.
func (s Specs) matchSyntax(name string) (masks []uint, known bool) {
	spec := s[name]
	if spec.Syntax == nil {
		return nil, false
	}
	mask := anyArguments
	for context, bits := range contextMasks {
		if spec.Syntax.contexts()&context != 0 {
			mask |= bits
		}
	}
	return []uint{mask}, true
}

// checkSyntax returns an error if d has a Syntax and not as many arguments as that wants.
func (s Specs) checkSyntax(d *Directive, blocks []string) error {
	spec, ok := s.of(d.Name, blocks)
	if !ok || spec.Syntax == nil || isData(blocks) || spec.Syntax.accepts(len(d.Args)) {
		return nil
	}
	return d.Errorf("invalid number of arguments in \"%s\" directive", d.Name)
}
