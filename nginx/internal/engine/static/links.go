package static

import "strings"

// Links says which symbolic links may be on the way to a file. The zero value allows all.
type Links struct {
	// Policy applies to the whole name.
	Policy LinkPolicy
	// From is a part at the beginning of names in which all links are allowed; "" is none.
	From string
	// Given is a part at the beginning of names that is the configuration's own: it may have ".." segments; "" is none.
	Given string
}

// climbs reports whether name has a ".." segment behind what is given, or a zero byte. Normalised paths have neither; a
// variable in root or try_files may.
func (l Links) climbs(name string) bool {
	if strings.IndexByte(name, 0) >= 0 {
		return true
	}
	if l.Given != "" && strings.HasPrefix(name, l.Given) {
		if rest := name[len(l.Given):]; strings.HasPrefix(rest, "/") {
			name = rest
		} else { // what follows may continue the last segment
			name = name[strings.LastIndexByte(l.Given, '/')+1:]
		}
	}
	for segment := range strings.SplitSeq(name, "/") {
		if segment == ".." {
			return true
		}
	}
	return false
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
