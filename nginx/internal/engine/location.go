package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/route"
)

// locationModule finds the location of a request.
var locationModule = module{
	directives: []directive{
		{name: "internal", compile: internal},
		{name: "limit_except", repeatable: true, compile: limitExcept},
		{name: "location", repeatable: true, captures: locationCaptures},
		{name: "merge_slashes", compile: setFlag(locationSlot, func(s *locationSettings) *bool { return &s.mergeSlashes })},
	},
	blocks: compileLocations,
	hooks:  hooks{located: refuseInternal},
}

type locationSettings struct {
	internal     bool // also the locations inside
	mergeSlashes bool
}

var locationSlot = newSlot(locationSettings{mergeSlashes: true})

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

// compileLocations compiles the blocks inside a server or a location.
func compileLocations(c *compiler, l *level, list []*conf.Directive) error {
	if err := compileExcept(c, l); err != nil {
		return err
	}
	for _, d := range list {
		if d.Name != "location" {
			continue
		}
		if err := c.fail(compileLocation(c, l, d)); err != nil {
			return err
		}
	}
	return nil
}

func compileLocation(c *compiler, outer *level, d *conf.Directive) error {
	l := outer.child(d)
	l.kind, l.name = locationName(d)
	if l.kind == unknownLocation {
		return d.Errorf("invalid location modifier \"%s\"", l.name)
	}
	if err := nestable(outer, l, d); err != nil {
		return err
	}
	l.locations = &route.Locations[*level]{}
	if err := c.block(l, d.Block); err != nil {
		return err
	}
	return l.addTo(outer.locations, d)
}

func locationCaptures(c *compiler, d *conf.Directive) error {
	if kind, name := locationName(d); kind == patternLocation || kind == patternNoCaseLocation {
		return c.declareGroups(d, name)
	}
	return nil
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
func (l *level) addTo(into *route.Locations[*level], d *conf.Directive) error {
	entry := route.Prefix[*level]{
		Name:     l.name,
		Final:    l.kind == finalLocation,
		Redirect: (*passSlot.of(l) != nil || *culvertHandlerSlot.of(l) != nil) && strings.HasSuffix(l.name, "/"),
		Nested:   l.locations,
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
		into.AddPattern(route.Pattern[*level]{Regexp: re, Nested: l.locations, To: l})
	default:
		added = into.AddPrefix(entry)
	}
	if !added {
		return d.Errorf("duplicate location \"%s\"", l.name)
	}
	return nil
}

func internal(_ *compiler, l *level, _ *conf.Directive) error {
	locationSlot.edit(l).internal = true
	return nil
}

// refuseInternal keeps clients out of internal locations.
func refuseInternal(x *exchange, _ http.ResponseWriter) int {
	if locationSlot.of(x.level).internal && !x.Internal {
		return http.StatusNotFound
	}
	return 0
}

// parseTarget sets $uri and $args. It reports false if the path is malformed.
func parseTarget(x *exchange) bool {
	path, args := route.Split(x.RequestURI)
	uri, err := route.Normalize(path, locationSlot.of(x.level).mergeSlashes)
	if err != nil {
		x.Malformed = true
		return false
	}
	x.URI, x.Args = uri, args
	return true
}
