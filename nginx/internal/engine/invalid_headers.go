package engine

// headerFieldsModule removes header fields with invalid names.
var headerFieldsModule = module{
	directives: []directive{
		{name: "ignore_invalid_headers", compile: setFlag(headerFieldsSlot, func(s *headerFieldsSettings) *bool { return &s.removeInvalid })},
		{name: "underscores_in_headers", compile: setFlag(headerFieldsSlot, func(s *headerFieldsSettings) *bool { return &s.underscores })},
	},
	hooks: hooks{postRead: removeInvalidFields},
}

type headerFieldsSettings struct {
	removeInvalid bool
	underscores   bool // they are valid
}

var headerFieldsSlot = newSlot(headerFieldsSettings{removeInvalid: true})

// removeInvalidFields removes header fields whose names have anything but letters, digits and
// hyphens, as nginx does: many applications treat an underscore like a hyphen, so that the field
// could be taken for one that the proxy vouches for.
func removeInvalidFields(x *exchange) int {
	s := headerFieldsSlot.of(x.server.level)
	if !s.removeInvalid {
		return 0
	}
	for name := range x.HTTP.Header {
		if !s.valid(name) {
			delete(x.HTTP.Header, name)
		}
	}
	return 0
}

func (s *headerFieldsSettings) valid(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !(c == '_' && s.underscores) {
			return false
		}
	}
	return true
}
