package vars

import "strings"

// msie returns "1" if the client claims to be an Internet Explorer (ngx_http_process_user_agent).
func msie(r *Request) string {
	if Explorer(r.HTTP.UserAgent()) {
		return "1"
	}
	return ""
}

// Explorer reports whether a User-Agent is that of an Internet Explorer.
func Explorer(agent string) bool { return explorer(agent) != "" }

// explorer returns what a User-Agent has from the version of its Internet Explorer on, "" if it is none.
func explorer(agent string) string {
	_, version, found := strings.Cut(agent, "MSIE ")
	if !found || len(version) < len("6.0") || strings.Contains(agent, "Opera") {
		return ""
	}
	return version
}

// OldExplorer reports whether a User-Agent is that of an Internet Explorer up to version 6 without its second service pack.
func OldExplorer(agent string) bool {
	version := explorer(agent)
	if len(version) < 2 || version[1] != '.' {
		return false
	}
	return version[0] == '4' || version[0] == '5' || version[0] == '6' && !strings.Contains(version, "SV1")
}

// MacSafari reports whether a User-Agent is that of Safari on a Mac.
func MacSafari(agent string) bool {
	for _, other := range [...]string{"Opera", "Gecko/", "Chrome/"} {
		if strings.Contains(agent, other) {
			return false
		}
	}
	return explorer(agent) == "" && strings.Contains(agent, "Safari/") && strings.Contains(agent, "Mac OS X")
}
