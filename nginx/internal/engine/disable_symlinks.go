package engine

import (
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// linksModule refuses files that are reached by symbolic links (disable_symlinks of
// ngx_http_core_module.c).
var linksModule = module{
	directives: []directive{{name: "disable_symlinks", compile: disableSymlinks}},
}

var linksSlot = newSlot(linksSettings{})

type linksSettings struct {
	policy static.LinkPolicy
	from   vars.Value
}

// disableSymlinks compiles "disable_symlinks off" and "disable_symlinks on|if_not_owner [from=part]".
func disableSymlinks(c *compiler, l *level, d *conf.Directive) (err error) {
	s := linksSlot.edit(l)
	*s = linksSettings{}
	given, from := false, false
	for _, arg := range d.Args {
		part, isFrom := strings.CutPrefix(arg, "from=")
		switch {
		case arg == "off":
			given = true
		case arg == "on":
			s.policy, given = static.NoLinks, true
		case arg == "if_not_owner":
			s.policy, given = static.OwnersLinks, true
		case isFrom:
			if s.from, err = c.value(d, part); err != nil {
				return err
			}
			from = true
		default:
			return d.Errorf("invalid parameter \"%s\"", arg)
		}
	}
	switch {
	case !given:
		return d.Errorf("\"%s\" must have \"off\", \"on\" or \"if_not_owner\" parameter", d.Name)
	case len(d.Args) == 2 && !from:
		return d.Errorf("duplicate parameters \"%s %s\"", d.Args[0], d.Args[1])
	case from && s.policy == static.AllLinks:
		return d.Errorf("\"from=\" cannot be used with \"off\" parameter")
	case s.policy != static.AllLinks && !static.LinksChecked:
		return d.Errorf("\"%s\" is not supported on this platform", d.Name)
	}
	return nil
}

// links returns the links that may be on the way to the files of x.
func links(x *exchange) static.Links {
	s := linksSlot.of(x.level)
	if s.policy == static.AllLinks {
		return static.Links{Given: rootSlot.of(x.level).given}
	}
	return static.Links{Policy: s.policy, From: s.from.String(&x.Request), Given: rootSlot.of(x.level).given}
}
