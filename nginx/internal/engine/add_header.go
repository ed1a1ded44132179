package engine

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// addHeaderModule adds header fields.
var addHeaderModule = module{
	directives: []directive{
		{name: "add_header", repeatable: true, compile: addHeader},
	},
	active: func(l *level) bool { return len(*addHeaderSlot.of(l)) > 0 },
	hooks:  hooks{header: addHeaders},
}

var addHeaderSlot = newSlot([]header(nil))

// header is one add_header.
type header struct {
	name   string // canonical
	spelt  string
	value  vars.Value
	always bool
}

// addHeader compiles "add_header name value [always]". Directives on an inner level replace those
// of the outer levels.
func addHeader(c *compiler, l *level, d *conf.Directive) error {
	return appendHeader(c, l, d, addHeaderSlot)
}

// appendHeader compiles "name value [always]" into one of the fields of a slot.
func appendHeader(c *compiler, l *level, d *conf.Directive, s slot[[]header]) error {
	fields := s.edit(l)
	if l.first(d.Name) {
		*fields = nil
	}
	h, err := parseHeader(c, d)
	*fields = append(*fields, h)
	return err
}

func parseHeader(c *compiler, d *conf.Directive) (h header, err error) {
	h.name, h.spelt = http.CanonicalHeaderKey(d.Args[0]), d.Args[0]
	if len(d.Args) == 3 {
		if d.Args[2] != "always" {
			return h, d.Errorf("invalid parameter \"%s\"", d.Args[2])
		}
		h.always = true
	}
	h.value, err = c.value(d, d.Args[1])
	return h, err
}

// applies reports whether the field is added to the final header.
func (h header) applies(x *exchange) bool {
	return !x.withheld && (h.always || cachectl.AddHeaderStatus(x.Status))
}

// addHeaders adds the header fields to a final header. Those without "always" are added only
// for nginx's list of statuses. An empty value adds nothing. Last-Modified and ETag replace an
// existing field, others are added to it.
func addHeaders(x *exchange, to http.Header) {
	for _, h := range *addHeaderSlot.of(x.level) {
		if !h.applies(x) {
			continue
		}
		value := h.value.String(&x.Request)
		switch h.name {
		case "Last-Modified", "Etag":
			to.Del(h.name)
		}
		if value != "" {
			to.Add(h.name, value)
		}
	}
}

// hidden is no time that a client may send.
var hidden = time.Time{}.Add(time.Second)

// shownTime returns the Last-Modified that an add_header makes of a response that may be a range, hidden if it removes it, and the
// zero time if there is none.
func shownTime(x *exchange) (shown time.Time) {
	for _, h := range *addHeaderSlot.of(x.level) {
		if h.name != "Last-Modified" {
			continue
		}
		var err error
		if shown, err = http.ParseTime(h.value.String(&x.Request)); err != nil {
			shown = hidden
		}
	}
	return shown
}
