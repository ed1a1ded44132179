package conf

import "strings"

// unescape converts the escapes that nginx converts in every word of a configuration
// (ngx_conf_read_token) and crossplane does not: \" \' \\ \t \r \n. Any other backslash is kept,
// so that regular expressions keep theirs.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '"', '\'', '\\':
			b.WriteByte(s[i+1])
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'n':
			b.WriteByte('\n')
		default:
			b.WriteByte('\\')
			continue
		}
		i++
	}
	return b.String()
}
