package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// charsetModule adds the charset to Content-Type.
var charsetModule = module{
	directives: []directive{
		{name: "charset", compile: charset},
		{name: "charset_types", compile: charsetTypes},
	},
	hooks: hooks{header: setCharset},
}

var charsetSlot = newSlot(charsetRule{types: []string{"text/html", "text/xml", "text/plain", "text/vnd.wap.wml", "application/javascript", "application/rss+xml"}})

// charsetRule is charset and charset_types. Content is not recoded: source_charset and
// charset_map are refused.
type charsetRule struct {
	name  vars.Value // "" is off
	types []string
}

// charset compiles "charset name|off".
func charset(c *compiler, l *level, d *conf.Directive) (err error) {
	rule := charsetSlot.edit(l)
	rule.name, err = c.value(d, d.Args[0])
	if d.Args[0] == "off" {
		rule.name = vars.Value{}
	}
	return err
}

func charsetTypes(_ *compiler, l *level, d *conf.Directive) error {
	charsetSlot.edit(l).types = mediaTypes([]string{"text/html"}, d.Args)
	return nil
}

// setCharset adds the charset to a Content-Type that has none.
func setCharset(x *exchange, h http.Header) {
	if name := charsetOf(x, h); name != "" {
		h.Set("Content-Type", h.Get("Content-Type")+"; charset="+name)
	}
}

// charsetOf returns the charset to add, "" for none.
func charsetOf(x *exchange, h http.Header) string {
	switch x.Status {
	case http.StatusSwitchingProtocols:
		return ""
	case http.StatusMovedPermanently, http.StatusFound:
		return "" // as in nginx none, since old browsers applied it to the next page
	}
	rule := charsetSlot.of(x.level)
	name := rule.name.String(&x.Request)
	t := h.Get("Content-Type")
	if name == "" || t == "" || strings.Contains(strings.ToLower(t), "charset=") || !isOneOf(rule.types, h) {
		return ""
	}
	return name
}
