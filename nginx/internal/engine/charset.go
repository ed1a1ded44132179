package engine

import (
	"io"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/recode"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// charsetModule adds the charset to Content-Type, and converts content to it
// (ngx_http_charset_filter_module.c).
var charsetModule = module{
	directives: []directive{
		{name: "charset", compile: charset},
		{name: "charset_map", repeatable: true, declare: charsetMap},
		{name: "charset_types", compile: charsetTypes},
		{name: "override_charset", compile: setFlag(charsetSlot, func(s *charsetRule) *bool { return &s.override })},
		{name: "source_charset", compile: sourceCharset},
	},
	merge: checkCharsets,
	hooks: hooks{body: recodeContent, header: setCharset},
}

var charsetSlot = newSlot(charsetRule{types: []string{"text/html", "text/xml", "text/plain", "text/vnd.wap.wml", "application/javascript", "application/rss+xml"}})

// charsetRule is charset, source_charset, override_charset and charset_types.
type charsetRule struct {
	name, source vars.Value // "" is off
	override     bool       // also where the upstream has named a charset
	types        []string
}

// charsetState is that of one response.
type charsetState struct {
	accel   string // an upstream's X-Accel-Charset
	decided bool
	name    string // of the content that the client receives; "" if it is not known
}

// charset compiles "charset name|off".
func charset(c *compiler, l *level, d *conf.Directive) (err error) {
	rule := charsetSlot.edit(l)
	if d.Args[0] == "off" {
		rule.name = vars.Value{}
		return nil
	}
	rule.name, err = c.charsetName(d)
	return err
}

// sourceCharset compiles "source_charset name".
func sourceCharset(c *compiler, l *level, d *conf.Directive) (err error) {
	charsetSlot.edit(l).source, err = c.charsetName(d)
	return err
}

// charsetName returns the charset that a directive names, or the variable that names it.
func (c *compiler) charsetName(d *conf.Directive) (vars.Value, error) {
	if strings.HasPrefix(d.Args[0], "$") {
		return c.value(d, d.Args[0])
	}
	c.engine.charsets.add(d.Args[0])
	return vars.Constant(d.Args[0]), nil
}

func charsetTypes(_ *compiler, l *level, d *conf.Directive) error {
	charsetSlot.edit(l).types = mediaTypes([]string{"text/html"}, d.Args)
	return nil
}

// checkCharsets finds charsets of a level between which there is no map.
func checkCharsets(c *compiler, l *level) error {
	rule := charsetSlot.of(l)
	from, _ := rule.source.Literal()
	to, _ := rule.name.Literal()
	if !charsetSlot.own(l) || from == "" || to == "" || strings.EqualFold(from, to) {
		return nil
	}
	if _, ok := c.engine.charsets.table(from, to); !ok {
		return l.at.Errorf("no \"charset_map\" between the charsets \"%s\" and \"%s\"", from, to)
	}
	return nil
}

// recodeContent converts content between charsets that have a map.
func recodeContent(x *exchange) culvert.Filter {
	if len(x.engine.charsets.tables) == 0 {
		return nil
	}
	return x.once(&x.charset.decided, func(status int, h http.Header) func(io.Writer) io.WriteCloser {
		x.Status = status
		table := x.decideCharset(h)
		if table == nil {
			return nil
		}
		if !table.KeepsLength() {
			h.Del("Content-Length")
			h.Del("Accept-Ranges")
		}
		return table.NewWriter
	})
}

// setCharset adds the charset to the Content-Type of a response that is not converted.
func setCharset(x *exchange, h http.Header) {
	if !x.charset.decided {
		x.decideCharset(h)
	}
}

// decideCharset writes the charset of a response into its Content-Type, and returns the table by
// which its content must be converted, nil if it need not be.
func (x *exchange) decideCharset(h http.Header) *recode.Table {
	x.charset.decided = true
	mediaType, given := splitCharset(h.Get("Content-Type"))
	x.charset.name = given
	to := x.charsetWanted(mediaType, given, h)
	if to == "" {
		return nil
	}
	from := given
	if from == "" {
		from = charsetSlot.of(x.level).source.String(&x.Request)
	}
	var table *recode.Table
	switch {
	case from == "", strings.EqualFold(from, to):
	case h.Get("Content-Encoding") != "":
		return nil
	default:
		t, ok := x.engine.charsets.table(from, to)
		if !ok {
			x.logError("no \"charset_map\" between the charsets \"" + from + "\" and \"" + to + "\"")
			return nil
		}
		table = &t
	}
	x.charset.name = to
	if x.Status == http.StatusMovedPermanently || x.Status == http.StatusFound {
		h.Set("Content-Type", mediaType) // no charset, since old browsers applied it to the next page
	} else {
		h.Set("Content-Type", mediaType+"; charset="+to)
	}
	return table
}

// charsetWanted returns the charset that the client is to receive, "" to leave the response as it
// is. A subrequest has that of the response around it.
func (x *exchange) charsetWanted(mediaType, given string, h http.Header) string {
	rule := charsetSlot.of(x.level)
	switch {
	case x.main != nil:
		return x.root().charset.name
	case mediaType == "" || x.Status == http.StatusSwitchingProtocols:
		return ""
	case x.charset.accel != "":
		if x.engine.charsets.known[strings.ToLower(x.charset.accel)] {
			return x.charset.accel
		}
		x.logError("unknown charset \"" + x.charset.accel + "\" to override")
		return ""
	case given != "" && !rule.override, given == "" && !isOneOf(rule.types, h.Get("Content-Type")):
		return ""
	}
	return rule.name.String(&x.Request)
}

// charsetOf returns the charset that a response with the header h will have, "" for none.
func charsetOf(x *exchange, h http.Header) string {
	mediaType, given := splitCharset(h.Get("Content-Type"))
	if to := x.charsetWanted(mediaType, given, h); to != "" {
		return to
	}
	return given
}

// charsetOfParts returns the Content-Type of each of several ranges of content of a type, and how many of max ranges may be sent: content
// that is converted is sent as one, since it is not converted inside parts.
func charsetOfParts(x *exchange, t string, max int) (partType string, ranges int) {
	if !strings.Contains(x.HTTP.Header.Get("Range"), ",") {
		return "", max
	}
	mediaType, given := splitCharset(t)
	to := charsetOf(x, http.Header{"Content-Type": {t}})
	if to == "" || given != "" {
		return "", max
	}
	if from := charsetSlot.of(x.level).source.String(&x.Request); from != "" && !strings.EqualFold(from, to) {
		if _, ok := x.engine.charsets.table(from, to); !ok {
			return "", max
		}
		return "", min(max, 1)
	}
	return mediaType + "; charset=" + to, max
}

// recodes reports whether the length of content of a type may be changed.
func (x *exchange) recodes(t string) bool {
	rule := charsetSlot.of(x.level)
	from, to := rule.source.String(&x.Request), ""
	if from != "" {
		to = charsetOf(x, http.Header{"Content-Type": {t}})
	}
	table, ok := x.engine.charsets.table(from, to)
	return ok && !table.KeepsLength()
}

// splitCharset splits the charset off a Content-Type, and what follows it.
func splitCharset(t string) (mediaType, charset string) {
	i := strings.Index(strings.ToLower(t), "charset=")
	if i < 0 {
		return t, ""
	}
	charset, _, _ = strings.Cut(t[i+len("charset="):], ";")
	return strings.TrimRight(t[:i], "; "), strings.Trim(strings.TrimSpace(charset), `"`)
}
