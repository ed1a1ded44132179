package engine

import (
	"math"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
)

// browserModule has variables about the age of browsers (ngx_http_browser_module.c).
var browserModule = module{
	directives: []directive{
		{name: "ancient_browser", repeatable: true, compile: ancientBrowser},
		{name: "ancient_browser_value", compile: setText(browserSlot, func(s *browserSettings) *string { return &s.ancientValue })},
		{name: "modern_browser", repeatable: true, compile: modernBrowser},
		{name: "modern_browser_value", compile: setText(browserSlot, func(s *browserSettings) *string { return &s.modernValue })},
	},
	variables: map[string]variable{
		"ancient_browser": known(func(x *exchange) string { return browserValue(x, false) }),
		"modern_browser":  known(func(x *exchange) string { return browserValue(x, true) }),
	},
	merge: addOpera,
}

var browserSlot = newSlot(browserSettings{ancientValue: "1", modernValue: "1"})

type browserSettings struct {
	modern                    []modernRule
	unlisted                  bool // browsers that are not listed are modern
	ancient                   []string
	netscape4                 bool
	modernValue, ancientValue string
}

// modernRule is a modern_browser. Browsers are examined in the order of their kinds.
type modernRule struct {
	kind    int // index of browserKinds
	version int64
}

// browserKinds are what nginx knows: the text before the version, and the bytes of User-Agent before
// which it is not looked for. Opera is first: it has others' texts, too.
var browserKinds = []struct {
	name, text string
	skip       int
	length     int // of text, and what follows it
}{
	{"opera", "Opera", 0, len("Opera ")},
	{"msie", "MSIE ", len("Mozilla/4.0 (compatible; "), len("MSIE ")},
	{"gecko", "rv:", len("Mozilla/5.0 ("), len("rv:")},
	{"safari", "Safari/", len("Mozilla/5.0 ("), len("Safari/")},
	{"konqueror", "Konqueror/", len("Mozilla/5.0 (compatible; "), len("Konqueror/")},
}

// modernBrowser compiles "modern_browser browser version" and "modern_browser unlisted".
func modernBrowser(_ *compiler, l *level, d *conf.Directive) error {
	s := browserSlot.edit(l)
	if l.first(d.Name) {
		s.modern, s.unlisted = nil, false
	}
	if len(d.Args) == 1 {
		if d.Args[0] != "unlisted" {
			return d.Errorf("invalid value \"%s\"", d.Args[0])
		}
		s.unlisted = true
		return nil
	}
	for kind, b := range browserKinds {
		if !strings.EqualFold(b.name, d.Args[0]) {
			continue
		}
		version, rest := browserVersion(d.Args[1])
		if rest != "" {
			return d.Errorf("invalid browser version \"%s\"", d.Args[1])
		}
		s.modern = append(s.modern, modernRule{kind, version})
		return nil
	}
	return d.Errorf("unknown browser name \"%s\"", d.Args[0])
}

// ancientBrowser compiles "ancient_browser text ...".
func ancientBrowser(_ *compiler, l *level, d *conf.Directive) error {
	s := browserSlot.edit(l)
	if l.first(d.Name) {
		s.ancient, s.netscape4 = nil, false
	}
	for _, text := range d.Args {
		if text == "netscape4" {
			s.netscape4 = true
		} else {
			s.ancient = append(s.ancient, text)
		}
	}
	return nil
}

// addOpera makes Opera ancient unless it is listed, since it says to be MSIE, too.
func addOpera(_ *compiler, l *level) error {
	s := browserSlot.of(l)
	if !browserSlot.own(l) || len(s.modern) == 0 {
		return nil
	}
	s = browserSlot.edit(l)
	s.modern = slices.Clone(s.modern)
	if !slices.ContainsFunc(s.modern, func(r modernRule) bool { return r.kind == 0 }) {
		s.modern = append(s.modern, modernRule{0, math.MaxInt64})
	}
	slices.SortStableFunc(s.modern, func(a, b modernRule) int { return a.kind - b.kind })
	return nil
}

// browserVersion returns the number of a version at the beginning of a text, of which each part
// counts a hundredth of the one before.
func browserVersion(text string) (version int64, rest string) {
	part, scale := int64(0), int64(1000000)
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			part = min(part*10+int64(c-'0'), math.MaxInt32)
		case c == '.':
			version += part * scale
			part, scale = 0, scale/100
		default:
			return version + part*scale, text[i:]
		}
	}
	return version + part*scale, ""
}

func browserValue(x *exchange, modern bool) string {
	s := browserSlot.of(x.level)
	switch is := s.isModern(x.HTTP.UserAgent()); {
	case is != modern:
		return ""
	case modern:
		return s.modernValue
	}
	return s.ancientValue
}

// isModern reports whether a User-Agent is one of a modern browser (ngx_http_browser).
func (s *browserSettings) isModern(agent string) bool {
	if agent == "" {
		return s.unlisted
	}
	for _, r := range s.modern {
		kind := browserKinds[r.kind]
		if len(agent) <= kind.skip {
			continue
		}
		at := strings.Index(agent[kind.skip:], kind.text)
		if at < 0 || kind.skip+at+kind.length >= len(agent) {
			continue
		}
		version, _ := browserVersion(agent[kind.skip+at+kind.length:])
		return version >= r.version
	}
	switch {
	case len(s.modern) > 0 && !s.unlisted:
		return false
	case s.netscape4 && len(agent) > len("Mozilla/4.72 ") && strings.HasPrefix(agent, "Mozilla/") && agent[8] > '0' && agent[8] < '5':
		return false
	case slices.ContainsFunc(s.ancient, func(text string) bool { return strings.Contains(agent, text) }):
		return false
	}
	return s.unlisted
}
