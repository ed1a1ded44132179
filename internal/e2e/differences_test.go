package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// difference is one that is wanted. apply removes it from what was seen of both servers, and reports
// whether it was there.
type difference struct {
	name, reason string
	apply        func(nginx, culvert *seen) bool
}

// eachResponse makes a difference of a function that compares pairs of responses.
func eachResponse(look func(n, c *response) bool) func(*seen, *seen) bool {
	return func(nginx, culvert *seen) bool {
		met := false
		for i := range min(len(nginx.Responses), len(culvert.Responses)) {
			if look(&nginx.Responses[i], &culvert.Responses[i]) {
				met = true
			}
		}
		return met
	}
}

// eachRequest returns a difference that look finds in pairs of upstream requests.
func eachRequest(look func(n, c *upstreamRequest) bool) func(*seen, *seen) bool {
	return func(nginx, culvert *seen) bool {
		met := false
		for name, requests := range nginx.Upstream {
			for i := range min(len(requests), len(culvert.Upstream[name])) {
				if look(&requests[i], &culvert.Upstream[name][i]) {
					met = true
				}
			}
		}
		return met
	}
}

func drop(fields map[string][]string, name string, want ...string) bool {
	if !slices.Equal(fields[name], want) {
		return false
	}
	delete(fields, name)
	return true
}

// userID is a cookie of userid's.
var userID = regexp.MustCompile(`^id=[A-Za-z0-9+/]{22}==`)

// differences are those that are wanted, each as narrow as it can be.
var differences = []difference{
	{"range of what could be compressed", "nginx compresses the whole file and forgets the range; culvert sends the range", eachResponse(func(n, c *response) bool {
		if n.Status != 200 || !slices.Equal(n.Fields["Content-Encoding"], []string{"gzip"}) || c.Status != 206 || len(c.Fields["Content-Range"]) != 1 {
			return false
		}
		*n = *c
		return true
	})},
	{"compressed responses vary", "responses that may be compressed have Vary where gzip_vary is not set", eachResponse(func(n, c *response) bool {
		return n.Fields["Vary"] == nil && drop(c.Fields, "Vary", "Accept-Encoding")
	})},
	{"user ids", "they are random", eachResponse(func(n, c *response) bool {
		if len(n.Fields["Set-Cookie"]) != 1 || len(c.Fields["Set-Cookie"]) != 1 {
			return false
		}
		a, b := userID.ReplaceAllString(n.Fields["Set-Cookie"][0], "id=random"), userID.ReplaceAllString(c.Fields["Set-Cookie"][0], "id=random")
		if a == n.Fields["Set-Cookie"][0] || a != b {
			return false
		}
		n.Fields["Set-Cookie"] = c.Fields["Set-Cookie"]
		return true
	})},
	{"no content said", "net/http does not keep that a request without a body has a length of 0, and sends one for methods that usually have one (RFC 9110 section 8.6); nginx forwards the field", eachRequest(func(n, c *upstreamRequest) bool {
		return n.Body == "" && c.Body == "" && (c.Fields["Content-Length"] == nil && drop(n.Fields, "Content-Length", "0") || n.Fields["Content-Length"] == nil && drop(c.Fields, "Content-Length", "0"))
	})},
	{"server", "each says the version of nginx that it stands for", eachResponse(func(n, c *response) bool {
		return len(n.Fields["Server"]) == 1 && strings.HasPrefix(n.Fields["Server"][0], "nginx") &&
			n.Fields["Server"][0] != "nginx" && drop(n.Fields, "Server", n.Fields["Server"][0]) && drop(c.Fields, "Server", "nginx/1.31.5")
	})},
	{"date", "the time of the response", eachResponse(func(n, c *response) bool {
		if len(n.Fields["Date"]) != 1 || len(c.Fields["Date"]) != 1 {
			return false
		}
		alignExpiry(n.Fields, c.Fields)
		delete(n.Fields, "Date")
		delete(c.Fields, "Date")
		return true
	})},
	{"signature", "built-in pages are signed", eachResponse(func(n, c *response) bool {
		i := strings.Index(n.Body, "<center>nginx")
		if i < 0 || !strings.Contains(c.Body, "<center>nginx/1.31.5</center>") {
			return false
		}
		end := i + strings.Index(n.Body[i:], "</center>")
		n.Body = n.Body[:i] + "<center>nginx/1.31.5" + n.Body[end:]
		delete(n.Fields, "Content-Length")
		delete(c.Fields, "Content-Length")
		return true
	})},
	{"length of what is changed", "net/http sends the length of a small response that was compressed, decompressed or replaced in; nginx sends it in chunks", eachResponse(func(n, c *response) bool {
		if n.Body != c.Body || len(n.Body) > 2048 || n.Fields["Content-Length"] != nil || len(c.Fields["Content-Length"]) > 1 {
			return false
		}
		delete(c.Fields, "Content-Length")
		// In HTTP/1.0 the end of the connection is nginx's end of the response.
		return c.Fields["Transfer-Encoding"] == nil && (drop(n.Fields, "Transfer-Encoding", "chunked") || n.Close && c.Close)
	})},
	{"error pages are not kept", "cachectl.ErrorPages: a 410 must not stick", eachResponse(func(n, c *response) bool {
		return n.Status >= 400 && n.Fields["Cache-Control"] == nil && n.Fields["Expires"] == nil &&
			drop(c.Fields, "Cache-Control", "private, no-cache") && drop(c.Fields, "Expires", "Thu, 01 Jan 1970 00:00:01 GMT")
	})},
	{"upstream HTTP version", "mainline nginx speaks 1.1 with keepalive to upstreams by default, as culvert does; 1.22 speaks 1.0 and closes", eachRequest(func(n, c *upstreamRequest) bool {
		closed := c.Fields["Connection"] == nil && drop(n.Fields, "Connection", "close")
		if line, ok := strings.CutSuffix(n.Line, " HTTP/1.0"); ok && strings.HasSuffix(c.Line, " HTTP/1.1") {
			n.Line = line + " HTTP/1.1"
			return true
		}
		return closed
	})},
	{"Host first", "1.31 sends Host in front of all other fields, as culvert does; 1.22 sends it where the file names it", eachRequest(func(n, c *upstreamRequest) bool {
		i := slices.Index(n.Names, "Host")
		if i <= 0 || len(c.Names) == 0 || c.Names[0] != "Host" {
			return false
		}
		n.Names = slices.Insert(slices.Delete(n.Names, i, i+1), 0, "Host")
		return true
	})},
	{"blanks in a query", "nginx puts what it has decoded into a query as it is, and its request line falls apart; culvert escapes it", eachRequest(func(n, c *upstreamRequest) bool {
		if n.Line != "GET /index.php?title=A page&action=edit&action=edit HTTP/1.1" || c.Line != "GET /index.php?title=A%20page&action=edit&action=edit HTTP/1.1" {
			return false
		}
		n.Line = c.Line
		return true
	})},
	{"token case", "Connection: Upgrade is spelt as RFC 6455 spells it", eitherWay(func(n, c map[string][]string) bool {
		return n["Upgrade"] != nil && slices.Equal(n["Connection"], []string{"upgrade"}) && drop(c, "Connection", "Upgrade") && drop(n, "Connection", "upgrade")
	})},
	{"named in Connection", "fields that a client names in Connection are its connection's own (RFC 9110 section 7.6.1)", eachRequest(func(n, c *upstreamRequest) bool {
		return c.Fields["X-Secret"] == nil && c.Fields["X-Forwarded-For"] == nil && drop(n.Fields, "X-Secret", "1") && drop(n.Fields, "X-Forwarded-For", "192.0.2.1")
	})},
	{"Proxy-Connection", "an old client's mistake for Connection, not forwarded (RFC 9112 appendix C.2.2)", eachRequest(func(n, c *upstreamRequest) bool {
		return c.Fields["Proxy-Connection"] == nil && drop(n.Fields, "Proxy-Connection", "keep-alive")
	})},
	{"HTTP2-Settings", "belongs to an h2c upgrade, which is never forwarded", eachRequest(func(n, c *upstreamRequest) bool {
		return c.Fields["Http2-Settings"] == nil && drop(n.Fields, "Http2-Settings", "AAMAAABkAAQAAP__")
	})},
	{"Upgrade alone", "an Upgrade that Connection does not list requests nothing (RFC 9110 section 7.8), so $http_upgrade is empty", eachResponse(func(n, c *response) bool {
		return swap(n, c, "upgrade none nothing ", "close none nothing ")
	})},
	{"trailers", "nginx announces trailers that it does not forward; culvert does not", eachResponse(func(n, c *response) bool {
		if c.Trailer != nil || !drop(n.Trailer, "X-Sum") {
			return false
		}
		n.Trailer = nil
		return true
	})},
	{"link through a file", "nginx takes it for an error of the whole listing, and closes; culvert shows it as itself", eachResponse(func(n, c *response) bool {
		if n.None != "closed" || c.Status != 200 || !strings.Contains(c.Body, "<title>Index of /through/</title>") || !strings.Contains(c.Body, ">link</a>") {
			return false
		}
		*n = *c
		return true
	})},
	{"interim responses", "culvert drops a 103, as nginx does from 1.29 on without early_hints; nginx 1.22 takes it for the final response and stops", onlyCulvert("/early-hints", "timeout", 200)},
	{"garbage", "nginx takes it for HTTP/0.9 and forwards it; culvert says 502", onlyCulvert("/garbage", "not HTTP", 502)},
	{"status 099", "nginx forwards it; culvert says 502", onlyCulvert("/status099", "not HTTP", 502)},
}

// eitherWay looks at the header fields of responses and of upstream requests.
func eitherWay(look func(n, c map[string][]string) bool) func(*seen, *seen) bool {
	responses := eachResponse(func(n, c *response) bool { return look(n.Fields, c.Fields) })
	requests := eachRequest(func(n, c *upstreamRequest) bool { return look(n.Fields, c.Fields) })
	return func(nginx, culvert *seen) bool {
		a, b := responses(nginx, culvert), requests(nginx, culvert)
		return a || b
	}
}

// swap makes n's body c's if they are just these two.
func swap(n, c *response, nginx, culvert string) bool {
	if n.Body != nginx || c.Body != culvert {
		return false
	}
	*n = *c
	return true
}

// onlyCulvert is for a response of the upstream that nginx can't forward.
func onlyCulvert(path, none string, status int) func(*seen, *seen) bool {
	return func(nginx, culvert *seen) bool {
		up := nginx.Upstream["UP1"]
		if len(up) != 1 || !strings.HasPrefix(up[0].Line, "GET "+path+" ") || nginx.Responses[0].None != none || culvert.Responses[0].Status != status {
			return false
		}
		nginx.Responses = culvert.Responses
		return true
	}
}

// alignExpiry gives nginx's Expires the text of culvert's if both are equally far from
// the Date of their response: the two responses are seldom of the same second. The
// tolerance of a second is for the clock, which may advance between the two fields of a
// response. A constant, like that of "expires epoch", is years away and is not changed.
func alignExpiry(nginx, culvert map[string][]string) {
	n, ok := lifetime(nginx)
	c, ok2 := lifetime(culvert)
	const year = 366 * 24 * time.Hour
	if ok && ok2 && n.Abs() <= year && (n-c).Abs() <= time.Second {
		nginx["Expires"] = culvert["Expires"]
	}
}

// lifetime is the time from Date to Expires.
func lifetime(fields map[string][]string) (time.Duration, bool) {
	if len(fields["Expires"]) != 1 {
		return 0, false
	}
	date, err := http.ParseTime(fields["Date"][0])
	expires, err2 := http.ParseTime(fields["Expires"][0])
	return expires.Sub(date), err == nil && err2 == nil
}
