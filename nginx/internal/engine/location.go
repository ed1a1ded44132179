package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

// locationKind is how a location's name is compared with a path.
type locationKind int

const (
	noLocation            locationKind = iota // the level of a server
	prefixLocation                            // location /x
	finalLocation                             // location ^~ /x
	exactLocation                             // location = /x
	patternLocation                           // location ~ x
	patternNoCaseLocation                     // location ~* x
	namedLocation                             // location @x
	unknownLocation
)

// locationName parses the arguments of a location. The modifier may stand before the name without
// a space.
func locationName(d *conf.Directive) (locationKind, string) {
	signs := []struct {
		sign string
		kind locationKind
	}{{"=", exactLocation}, {"^~", finalLocation}, {"~*", patternNoCaseLocation}, {"~", patternLocation}}
	if len(d.Args) == 2 {
		for _, s := range signs {
			if d.Args[0] == s.sign {
				return s.kind, d.Args[1]
			}
		}
		return unknownLocation, d.Args[0]
	}
	for _, s := range signs {
		if name, ok := strings.CutPrefix(d.Args[0], s.sign); ok {
			return s.kind, name
		}
	}
	if strings.HasPrefix(d.Args[0], "@") {
		return namedLocation, d.Args[0]
	}
	return prefixLocation, d.Args[0]
}

// locations compiles the locations among list, which stand inside outer, and adds them to into.
func (c *compiler) locations(outer *level, into *route.Locations[*level], list []*conf.Directive) error {
	for _, d := range list {
		if d.Name != "location" {
			continue
		}
		if err := c.location(outer, into, d); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) location(outer *level, into *route.Locations[*level], d *conf.Directive) error {
	l := outer.child()
	l.kind, l.name = locationName(d)
	if l.kind == unknownLocation {
		return d.Errorf("invalid location modifier \"%s\"", l.name)
	}
	if err := nestable(outer, l, d); err != nil {
		return err
	}
	if err := c.block(l, d.Block); err != nil {
		return err
	}
	if err := c.finish(l); err != nil {
		return d.Errorf("%s", err)
	}
	if err := c.finishPass(l); err != nil {
		return err
	}
	if err := c.finishIfs(l); err != nil {
		return err
	}
	if err := c.finishExcept(l); err != nil {
		return err
	}
	nested := &route.Locations[*level]{}
	if err := c.locations(l, nested, d.Block); err != nil {
		return err
	}
	return l.addTo(into, nested, d)
}

// nestable returns an error for a location where nginx allows none.
func nestable(outer, l *level, d *conf.Directive) error {
	switch {
	case outer.kind == noLocation:
		return nil
	case outer.kind == exactLocation:
		return d.Errorf("location \"%s\" cannot be inside the exact location \"%s\"", l.name, outer.name)
	case outer.kind == namedLocation:
		return d.Errorf("location \"%s\" cannot be inside the named location \"%s\"", l.name, outer.name)
	case l.kind == namedLocation:
		return d.Errorf("named location \"%s\" can be on the server level only", l.name)
	case l.isPattern():
		return nil
	case !strings.HasPrefix(l.name, outer.name):
		return d.Errorf("location \"%s\" is outside location \"%s\"", l.name, outer.name)
	}
	return nil
}

func (l *level) isPattern() bool {
	return l.kind == patternLocation || l.kind == patternNoCaseLocation
}

// addTo adds l to the locations that are searched for it.
func (l *level) addTo(into, nested *route.Locations[*level], d *conf.Directive) error {
	entry := route.Prefix[*level]{
		Name:     l.name,
		Final:    l.kind == finalLocation,
		Redirect: l.pass != nil && strings.HasSuffix(l.name, "/"),
		Nested:   nested,
		To:       l,
	}
	added := true
	switch l.kind {
	case namedLocation:
		if _, have := l.server.named[l.name]; !have { // of several nginx uses the first
			l.server.named[l.name] = l
		}
	case exactLocation:
		added = into.AddExact(entry)
	case patternLocation, patternNoCaseLocation:
		re, err := pattern(d, l.name, l.kind == patternNoCaseLocation)
		if err != nil {
			return err
		}
		into.AddPattern(route.Pattern[*level]{Regexp: re, Nested: nested, To: l})
	default:
		added = into.AddPrefix(entry)
	}
	if !added {
		return d.Errorf("duplicate location \"%s\"", l.name)
	}
	return nil
}

func internal(_ *compiler, l *level, _ *conf.Directive) error {
	l.internal = true
	return nil
}

func mergeSlashes(_ *compiler, l *level, d *conf.Directive) error {
	l.mergeSlashes = d.Flag()
	return nil
}
