package filters

import (
	"fmt"
	"mime"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
)

// HeaderRule changes the header fields of responses: Remove first, then Set, then Add.
type HeaderRule struct {
	// Status reports whether the rule applies to responses with a status. nil means every
	// final response, errors included, as nginx's parameter "always". StatusClass makes one
	// of classes, and cachectl.AddHeaderStatus is nginx's add_header without "always".
	Status func(status int) bool
	// ContentTypes are the media types of the responses that the rule applies to, such as
	// "text/html" or "text/*", without parameters. nil means all responses, including
	// those without a type.
	ContentTypes []string
	// Remove holds the names of fields to remove. Neither they nor those of Set and Add
	// may be Content-Length, Host or hop-by-hop fields: the server chooses those.
	Remove []string
	// Set holds fields that replace those of the same name.
	Set http.Header
	// Add holds fields that are added to those of the same name.
	Add http.Header
}

// StatusClass returns a HeaderRule.Status for the classes of statuses: 4 is 400 to 499.
func StatusClass(classes ...int) func(int) bool {
	return func(status int) bool { return slices.Contains(classes, status/100) }
}

// Headers returns a filter that applies the rules, in order, to the final header of each
// response. It does not change interim responses and upgrades. It returns an error if a
// rule names a header field that can't be sent or a content type that no response has.
func Headers(rules ...HeaderRule) (culvert.Filter, error) {
	compiled := make([]headerRule, len(rules))
	for i, r := range rules {
		var err error
		if compiled[i], err = r.compile(); err != nil {
			return nil, fmt.Errorf("filters: Headers: %w", err)
		}
	}
	return OnResponse(ResponseHooks{Header: func(_ *http.Request, status int, h http.Header) {
		if status == http.StatusSwitchingProtocols {
			return
		}
		for i := range compiled {
			compiled[i].apply(status, h)
		}
	}}), nil
}

// headerRule is a HeaderRule with canonical names.
type headerRule struct {
	status   func(int) bool // nil: every status
	types    []string
	remove   []string
	set, add []field
}

// field is a header field.
type field struct {
	name   string
	values []string
}

func (r HeaderRule) compile() (headerRule, error) {
	c := headerRule{status: r.Status}
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

// checkField returns an error if no filter may change the header field of this name.
func checkField(name string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("invalid field name %q", name)
	}
	if header.IsReserved(name) {
		return fmt.Errorf("field %s is chosen by the server", name)
	}
	return nil
}

// compileTypes returns media types in lower case, or an error if no response can have one of them.
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

func (c *headerRule) apply(status int, h http.Header) {
	if c.status != nil && !c.status(status) || !hasType(c.types, h) {
		return
	}
	for _, name := range c.remove {
		delete(h, name)
	}
	for _, f := range c.set {
		h[f.name] = slices.Clone(f.values) // an outer filter may change them in place
	}
	for _, f := range c.add {
		h[f.name] = append(h[f.name], f.values...)
	}
}

// hasType reports whether h's media type is among types, where nil means all.
func hasType(types []string, h http.Header) bool {
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

// mediaType returns the media type of a response in lower case, "" if it has none.
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
