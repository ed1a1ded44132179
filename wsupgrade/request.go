package wsupgrade

import (
	"bytes"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/internal/fieldnames"
)

// notCopied are the fields that describe a body, or that renderRequest writes itself.
var notCopied = map[string]bool{
	"Host":              true,
	"Connection":        true,
	"Upgrade":           true,
	"Content-Length":    true,
	"Transfer-Encoding": true,
	"Trailer":           true,
	"Expect":            true, // the body is read before it is sent
}

// renderRequest renders the request that is sent to the target. It offers protocol alone, even if
// out offers others; with "" it is a plain request, the only one of its connection. A nil body
// means none. net/http's Request.Write encodes some paths anew and invents a User-Agent; here the
// client's bytes are kept.
func renderRequest(out *http.Request, protocol string, body []byte) ([]byte, error) {
	method, target, host := out.Method, requestTarget(out.URL), out.Host
	if method == "" {
		method = http.MethodGet
	}
	if host == "" {
		host = out.URL.Host
	}
	for _, part := range []string{method, target, host} {
		if part == "" || strings.ContainsFunc(part, breaksLine) {
			return nil, errors.New("method, target or host can't be written")
		}
	}
	if target[0] == '*' && (target != "*" || method != http.MethodOptions) {
		return nil, errors.New("an asterisk for a path") // RFC 9112 section 3.2.4
	}
	var b bytes.Buffer
	b.WriteString(method + " " + target + " HTTP/1.1\r\n")
	if names := fieldnames.UpgradeOf(out.Context()); names != nil && names.Request != nil {
		renderNamed(&b, names.Request, out, host, protocol, body)
		return b.Bytes(), nil
	}
	b.WriteString("Host: " + host + "\r\n")
	if protocol != "" {
		b.WriteString("Connection: Upgrade\r\nUpgrade: " + protocol + "\r\n")
	} else {
		b.WriteString("Connection: close\r\n")
	}
	if body != nil {
		b.WriteString("Content-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	skip := notCopied
	if agent := out.Header["User-Agent"]; len(agent) > 0 && agent[0] == "" {
		skip = maps.Clone(notCopied)
		skip["User-Agent"] = true // net/http's convention for none
	}
	if err := out.Header.WriteSubset(&b, skip); err != nil {
		return nil, err
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes(), nil
}

// requestTarget returns the path and query as the client sent them. Opaque is sent unchanged, also
// with a leading "//", which net/http would turn into the absolute form. RawPath counts where it
// decodes to Path; else a filter has changed Path.
func requestTarget(u *url.URL) string {
	target := u.Opaque
	switch {
	case target != "":
	case u.RawPath != "" && decodesTo(u.RawPath, u.Path):
		target = u.RawPath
	case u.Path == "":
		target = "/"
	default:
		target = (&url.URL{Path: u.Path}).EscapedPath()
	}
	if u.ForceQuery || u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	return target
}

func decodesTo(raw, path string) bool {
	decoded, err := url.PathUnescape(raw)
	return err == nil && decoded == path
}

// breaksLine reports whether c would end a word of the request line, or the line.
func breaksLine(c rune) bool { return c <= ' ' || c == 0x7f }
