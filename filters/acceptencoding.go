package filters

import (
	"net/textproto"
	"strings"
)

// quality returns the weight of a content coding in Accept-Encoding in
// thousandths, 0 if it is not acceptable (RFC 9110 section 12.5.3).
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

// identityQuality is the weight of no coding at all: where nothing is said of it,
// it is acceptable, but less than what is asked for.
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

// weight reads ";q=0.5" in thousandths. What is not well-formed counts as 0: then
// nothing is encoded that a client may not be able to read.
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
