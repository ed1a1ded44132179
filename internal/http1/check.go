package http1

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Check returns why r can't be written as a request. Prepare finds that out for itself;
// Check is for requests that something else writes, so that its refusal is not taken for a
// failure of the target.
func Check(r *http.Request) error {
	if err := CheckLine(r.Method, r.Host, Target(r)); err != nil {
		return err
	}
	for name, values := range r.Header {
		if err := checkName(name); err != nil {
			return err
		}
		for _, value := range values {
			if err := checkValue(name, value); err != nil {
				return err
			}
		}
	}
	return checkTrailers(r.Trailer)
}

// CheckLine returns why a request line and a Host field can't be written; host may be "".
func CheckLine(method, host, target string) error {
	if !httpguts.ValidHeaderFieldName(method) { // both are tokens
		return fmt.Errorf("invalid method %q", method)
	}
	if ascii, err := httpguts.PunycodeHostPort(host); err != nil || !httpguts.ValidHostHeader(ascii) {
		return fmt.Errorf("invalid host %q", host)
	}
	return checkTarget(method, target)
}

// Target returns r's request target: URL.Opaque, if it is set, in the place of the path. That
// differs from url.URL.RequestURI where it begins with "//": it is a path there, too.
func Target(r *http.Request) string { return string(appendTarget(nil, r)) }

func appendTarget(b []byte, r *http.Request) []byte {
	u := r.URL
	if u.Opaque == "" {
		return append(b, u.RequestURI()...)
	}
	b = append(b, u.Opaque...)
	if u.ForceQuery || u.RawQuery != "" {
		b = append(append(b, '?'), u.RawQuery...)
	}
	return b
}

// checkTarget allows the origin form, the absolute form, and the asterisk form for OPTIONS, the
// one method that it has a meaning for (RFC 9112 section 3.2).
func checkTarget[bytes string | []byte](method string, target bytes) error {
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c == 0x7f {
			return errors.New("blank or control character in the request target")
		}
	}
	switch {
	case len(target) > 0 && target[0] == '/',
		string(target) == "*" && method == http.MethodOptions,
		len(target) > 0 && target[0] != '*' && strings.Contains(string(target), "://"):
		return nil
	}
	return fmt.Errorf("request target %q with method %s", string(target), method)
}

func checkName(name string) error {
	if !httpguts.ValidHeaderFieldName(name) {
		return fmt.Errorf("invalid header field name %q", name)
	}
	return nil
}

// The error of checkValue does not have the value, which may be secret.
func checkValue(name, value string) error {
	if !httpguts.ValidHeaderFieldValue(value) {
		return fmt.Errorf("invalid header field value for %q", name)
	}
	return nil
}

func checkTrailers(trailer http.Header) error {
	for name := range trailer {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidTrailerHeader(name) {
			return fmt.Errorf("invalid trailer %q", name)
		}
	}
	return nil
}
