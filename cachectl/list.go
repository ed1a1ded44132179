package cachectl

import (
	"iter"
	"strings"
)

// elements returns the elements of a list of directives unchanged, white space included. A comma in a
// quoted string does not end one (RFC 9110 section 5.6.4), and a string that is not closed continues to the
// end of the line: what browsers do not read as a directive must not be taken for one here.
func elements(line string) iter.Seq[string] {
	if strings.IndexByte(line, '"') < 0 {
		return strings.SplitSeq(line, ",")
	}
	return func(yield func(string) bool) {
		start, quoted := 0, false
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case c == '"':
				quoted = !quoted
			case c == '\\' && quoted:
				i++
			case c == ',' && !quoted:
				if !yield(line[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(line[start:])
	}
}
