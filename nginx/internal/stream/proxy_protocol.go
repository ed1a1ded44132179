package stream

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/culvert-go/culvert/internal/proxyproto"
)

// maxHeader bounds the header of the PROXY protocol, as nginx does (NGX_PROXY_PROTOCOL_MAX_HEADER).
const maxHeader = 4 << 10

// readHeader reads the header of the PROXY protocol, and returns a status if there is none.
func (s *Session) readHeader() int {
	s.action = "reading PROXY protocol"
	until := time.Now().Add(s.server.ProxyProtocolTimeout)
	for {
		if err := s.readMore(maxHeader, until); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				s.LogAt(levelInfo, "client timed out (110: Connection timed out)")
				return statusOK
			}
			if errors.Is(err, io.EOF) && len(s.early) > 0 {
				return s.brokenHeader()
			}
			return statusOK
		}
		header, n, err := proxyproto.Parse(s.early)
		switch {
		case err != nil || n == 0 && len(s.early) >= maxHeader:
			return s.brokenHeader()
		case n > 0:
			s.header, s.named, s.early = header, true, s.early[n:]
			s.action = "initializing session"
			return 0
		}
	}
}

func (s *Session) brokenHeader() int {
	shown := s.early[:min(len(s.early), 107)]
	s.Error("broken header: \"" + string(shown) + "\"")
	return statusBadRequest
}
