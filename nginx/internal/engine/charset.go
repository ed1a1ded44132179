package engine

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// charsetRule is charset and charset_types. Content is not recoded: source_charset and
// charset_map are refused.
type charsetRule struct {
	name  vars.Value // "" is off
	types []string
}

func defaultCharset() charsetRule {
	return charsetRule{types: []string{"text/html", "text/xml", "text/plain", "text/vnd.wap.wml", "application/javascript", "application/rss+xml"}}
}

// charset compiles "charset name|off".
func charset(c *compiler, l *level, d *conf.Directive) (err error) {
	l.charset.name, err = c.value(d, d.Args[0])
	if d.Args[0] == "off" {
		l.charset.name = vars.Value{}
	}
	return err
}

func charsetTypes(_ *compiler, l *level, d *conf.Directive) error {
	l.charset.types = mediaTypes([]string{"text/html"}, d.Args)
	return nil
}

// applyCharset adds the charset to a Content-Type that has none.
func (l *level) applyCharset(x *exchange, h http.Header) {
	if name := l.charsetOf(x, h); name != "" {
		h.Set("Content-Type", h.Get("Content-Type")+"; charset="+name)
	}
}

// charsetOf returns the charset to add, "" for none.
func (l *level) charsetOf(x *exchange, h http.Header) string {
	if x.Status == http.StatusMovedPermanently || x.Status == http.StatusFound {
		return "" // as in nginx none, since old browsers applied it to the next page
	}
	name := l.charset.name.String(&x.Request)
	t := h.Get("Content-Type")
	if name == "" || t == "" || strings.Contains(strings.ToLower(t), "charset=") || !isOneOf(l.charset.types, h) {
		return ""
	}
	return name
}
