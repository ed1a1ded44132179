package http1

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ownPlaces are the fields of which the writer of a request has its own.
var ownPlaces = []string{"Host", "Connection", "Content-Length", "Transfer-Encoding", "Trailer"}

// appendNamed appends the fields as c.Names spells and orders them. Without a place of its own Host is the first, and
// the framing is the last.
func (c *Call) appendNamed(b []byte, host string, last bool) (_ []byte, err error) {
	r := c.Request
	if !c.Names.Has("Host") {
		b = append(append(append(b, "Host: "...), host...), "\r\n"...)
	}
	framed, hosted, connected := false, false, false
	frame := func() {
		if !framed {
			framed = true
			b = c.framing.append(b, r)
		}
	}
	connect := func() {
		if !connected {
			connected = true
			b, err = appendConnection(b, r, last)
		}
	}
	for name, value := range c.Names.Lines(r.Header, ownPlaces...) {
		switch name {
		case "Host":
			if !hosted {
				hosted = true
				b = append(append(append(b, "Host: "...), host...), "\r\n"...)
			}
		case "Connection":
			connect()
		case "Content-Length", "Transfer-Encoding", "Trailer":
			frame()
		default:
			if value != "" || !strings.EqualFold(name, "User-Agent") { // an empty one is net/http's convention for none
				b, err = appendField(b, name, value)
			}
		}
		if err != nil {
			return b, err
		}
	}
	connect()
	frame()
	return b, err
}

// appendConnection appends the field Connection, with "close" if the connection ends with the exchange.
func appendConnection(b []byte, r *http.Request, last bool) (_ []byte, err error) {
	lines := r.Header["Connection"]
	if (last || r.Close) && !httpguts.HeaderValuesContainsToken(lines, "close") {
		b = append(b, "Connection: close\r\n"...)
	}
	for _, line := range lines {
		if b, err = appendField(b, "Connection", line); err != nil {
			return b, err
		}
	}
	return b, nil
}
