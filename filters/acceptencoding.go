package filters

import (
	"net/textproto"
	"strings"
)

// quality returns the weight of a content coding in the lines of Accept-Encoding, in
// thousandths. It is 0 if the coding is not acceptable (RFC 9110 section 12.5.3).
func quality(accept []string, coding string) int {
	any := 0
	for _, line := range accept {
		for element := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(element, ";")
			switch name = textproto.TrimString(name); {
			case strings.EqualFold(name, coding), coding == "gzip" && strings.EqualFold(name, "x-gzip"):
				return weight(params)
			case name == "*":
				any = weight(params)
			}
		}
	}
	return any
}

// identityQuality returns the weight of the coding "identity". It is 0 if the client does not
// name it: identity is acceptable then, but any coding that the client names is preferred.
func identityQuality(accept []string) int {
	for _, line := range accept {
		for element := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(element, ";")
			if strings.EqualFold(textproto.TrimString(name), "identity") {
				return weight(params)
			}
		}
	}
	return 0
}

// weight parses a parameter such as "q=0.5" and returns it in thousandths, 1000 for none. A
// malformed one counts as 0, so that nothing is encoded that the client may not accept.
func weight(params string) int {
	params = textproto.TrimString(params)
	if params == "" {
		return 1000
	}
	value, ok := strings.CutPrefix(strings.ToLower(params), "q=")
	if !ok || value == "" || len(value) > 5 || value[0] != '0' && value[0] != '1' || len(value) > 1 && value[1] != '.' {
		return 0
	}
	q := int(value[0]-'0') * 1000
	for i, unit := 2, 100; i < len(value); i, unit = i+1, unit/10 {
		if value[i] < '0' || value[i] > '9' {
			return 0
		}
		q += int(value[i]-'0') * unit
	}
	return min(q, 1000)
}
