package filters

import (
	"fmt"
	"mime"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/head"
)

// HeaderRule changes the fields of answers. Removing comes first, then setting,
// then adding.
type HeaderRule struct {
	// Status says for which statuses the rule is; nil means those for which
	// nginx's add_header is: 200, 201, 204, 206, 301, 302, 303, 304, 307 and 308.
	// See AnyStatus and StatusClass.
	Status func(status int) bool
	// ContentTypes are the media types that the rule is for, "text/html" or
	// "text/*", without parameters; nil means all, an answer without a type included.
	ContentTypes []string
	// Remove are names of fields to be removed. Neither they nor those of Set and Add
	// may be Content-Length, Host or hop-by-hop fields: the server chooses those.
	Remove []string
	// Set are fields that replace what is there.
	Set http.Header
	// Add are fields that stand beside what is there.
	Add http.Header
}

// AnyStatus is for HeaderRule.Status: every answer, errors included, as nginx's
// "always".
func AnyStatus(int) bool { return true }

// StatusClass is for HeaderRule.Status: statuses of the classes, 4 for 400 to 499.
func StatusClass(classes ...int) func(int) bool {
	return func(status int) bool { return slices.Contains(classes, status/100) }
}

// Headers returns a filter that applies every rule that fits to each answer's
// final head; interim answers and upgrades stay as they are. An error names the
// field that can't be sent.
func Headers(rules ...HeaderRule) (Filter, error) {
	compiled := make([]headerRule, len(rules))
	for i, r := range rules {
		var err error
		if compiled[i], err = r.compile(); err != nil {
			return nil, fmt.Errorf("filters: Headers: %w", err)
		}
	}
	return OnResponse(ResponseHooks{Head: func(_ *http.Request, status int, h http.Header) {
		if status == http.StatusSwitchingProtocols {
			return
		}
		for i := range compiled {
			compiled[i].apply(status, h)
		}
	}}), nil
}

// headerRule is a rule with its names in their canonical form.
type headerRule struct {
	status   func(int) bool
	types    []string
	remove   []string
	set, add []field
}

// field is one with its values.
type field struct {
	name   string
	values []string
}

func (r HeaderRule) compile() (headerRule, error) {
	c := headerRule{status: r.Status}
	if c.status == nil {
		c.status = plainStatus
	}
	var err error
	if c.types, err = compileTypes(r.ContentTypes); err != nil {
		return c, err
	}
	for _, name := range r.Remove {
		if err := checkField(name); err != nil {
			return c, err
		}
		c.remove = append(c.remove, textproto.CanonicalMIMEHeaderKey(name))
	}
	if c.set, err = compileFields(r.Set); err != nil {
		return c, err
	}
	c.add, err = compileFields(r.Add)
	return c, err
}

func compileFields(h http.Header) (fields []field, err error) {
	for name, values := range h {
		if err := checkField(name); err != nil {
			return nil, err
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return nil, fmt.Errorf("invalid value %q of %s", v, name)
			}
		}
		fields = append(fields, field{textproto.CanonicalMIMEHeaderKey(name), slices.Clone(values)})
	}
	return fields, nil
}

// checkField returns why a filter can't change the field of this name.
func checkField(name string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("invalid field name %q", name)
	}
	if head.IsReserved(name) {
		return fmt.Errorf("field %s is chosen by the server", name)
	}
	return nil
}

// compileTypes returns media types in lower case. One that no response can have is an error.
func compileTypes(types []string) ([]string, error) {
	var compiled []string
	for _, t := range types {
		if prefix := strings.TrimSuffix(t, "*"); t == "" || strings.ContainsAny(prefix, "*;, \t\r\n") {
			return nil, fmt.Errorf("content type %q matches no response", t)
		}
		compiled = append(compiled, strings.ToLower(t))
	}
	return compiled, nil
}

func plainStatus(status int) bool {
	switch status {
	case 200, 201, 204, 206, 301, 302, 303, 304, 307, 308:
		return true
	}
	return false
}

func (c *headerRule) apply(status int, h http.Header) {
	if !c.status(status) || !typeFits(c.types, h) {
		return
	}
	for _, name := range c.remove {
		delete(h, name)
	}
	for _, f := range c.set {
		h[f.name] = slices.Clone(f.values) // whoever changes them must not change the rule
	}
	for _, f := range c.add {
		h[f.name] = append(h[f.name], f.values...)
	}
}

// typeFits says whether h's media type is among types; nil are all.
func typeFits(types []string, h http.Header) bool {
	if types == nil {
		return true
	}
	t := mediaType(h)
	for _, want := range types {
		if prefix, ok := strings.CutSuffix(want, "*"); ok && strings.HasPrefix(t, prefix) || t == want {
			return t != ""
		}
	}
	return false
}

// mediaType is the media type of an answer in lower case, "" if there is none.
func mediaType(h http.Header) string {
	v := h["Content-Type"]
	if len(v) == 0 {
		return ""
	}
	if t, _, err := mime.ParseMediaType(v[0]); err == nil {
		return t
	}
	t, _, _ := strings.Cut(v[0], ";")
	return strings.ToLower(textproto.TrimString(t))
}
