package static

import "strings"

// Links says which symbolic links may be on the way to a file. The zero value allows all.
type Links struct {
	// Policy applies to the whole name.
	Policy LinkPolicy
	// From is a part at the beginning of names in which all links are allowed; "" is none.
	From string
}

// LinkPolicy is the policy of Links.
type LinkPolicy int

const (
	// AllLinks follows all links.
	AllLinks LinkPolicy = iota
	// NoLinks follows none: a link to a file leads to a 403, and one on the way to a 404.
	NoLinks
	// OwnersLinks follows links that belong to the owner of what they lead to.
	OwnersLinks
)

// checked splits name into the part whose links are all allowed, and the rest, "" if there is none.
func (l Links) checked(name string) (trusted, rest string) {
	if l.Policy == AllLinks {
		return name, ""
	}
	if l.From != "" && strings.HasPrefix(name, l.From) {
		switch rest := name[len(l.From):]; {
		case rest == "":
			return name, ""
		case rest[0] == '/', strings.HasSuffix(l.From, "/"):
			return l.From, rest
		}
	}
	if strings.HasPrefix(name, "/") {
		return "/", name
	}
	return ".", name
}
