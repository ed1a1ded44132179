package engine

import "github.com/culvert-go/culvert/nginx/conf"

func ignoreInvalidHeaders(_ *compiler, l *level, d *conf.Directive) error {
	l.invalidFields = !d.Flag()
	return nil
}

func underscoresInHeaders(_ *compiler, l *level, d *conf.Directive) error {
	l.underscores = d.Flag()
	return nil
}

// removeInvalidFields removes header fields whose names have anything but letters, digits and
// hyphens, as nginx does: many applications treat an underscore like a hyphen, so that the field
// could be taken for one that the proxy vouches for.
func (x *exchange) removeInvalidFields() {
	l := x.server.level
	if l.invalidFields {
		return
	}
	for name := range x.HTTP.Header {
		for i := range len(name) {
			c := name[i]
			if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !(c == '_' && l.underscores) {
				delete(x.HTTP.Header, name)
				break
			}
		}
	}
}
