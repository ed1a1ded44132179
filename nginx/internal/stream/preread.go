package stream

import (
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/stream/hello"
)

// readHello reads the client's ClientHello without taking it from the content, and chooses the server that it names. It returns
// a status if the session is over.
func (s *Session) readHello() int {
	s.action = "prereading client data"
	until := time.Now().Add(s.server.PrereadTimeout)
	for {
		h, result := hello.Parse(s.early)
		switch {
		case result == hello.Other:
			return 0
		case result == hello.Complete:
			s.preread = &h
			s.chooseByName(h.ServerName)
			return 0
		case len(s.early) >= s.server.PrereadBuffer:
			s.Error("preread buffer full")
			return statusBadRequest
		}
		if err := s.readMore(s.server.PrereadBuffer, until); err != nil {
			return statusOK
		}
	}
}

// chooseByName makes the server of a name that the client has sent the session's.
func (s *Session) chooseByName(name string) {
	name, ok := hostName(name)
	if !ok || s.host.Find == nil {
		return
	}
	server, groups, groupNames, err := s.host.Find(name)
	if err != nil {
		s.Fail(err)
	}
	if server == nil {
		return
	}
	if groups != nil {
		s.Capture(groups, groupNames)
	}
	s.server = server
}

// hostName converts a name to lower case and removes the dot at its end. It reports false for what is no host name
// (ngx_stream_validate_host).
func hostName(name string) (string, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	bad := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"/<>?@\^`+"`{|}", r) }
	return name, name != "" && !strings.HasPrefix(name, ".") && !strings.Contains(name, "..") && !strings.ContainsFunc(name, bad)
}
