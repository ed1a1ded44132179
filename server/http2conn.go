package server

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
)

// http2Conn is a client's connection as golang.org/x/net sees it. It follows the frames of both sides, and changes what
// golang.org/x/net would do in four cases:
//
//   - A malformed request gets a 400 before its stream is reset (RFC 9113 section 8.1.1), so that its client learns why.
//   - A header section of more than 16 KiB is sent in frames as large as the client accepts (section 6.5.2).
//   - A setting that one frame has twice has its last value (section 6.5.3).
//   - A PUSH_PROMISE ends the connection without a wait for its payload (section 8.4).
//
// Beside a frame of control or of a header section, which it holds to change it, it copies nothing.
type http2Conn struct {
	net.Conn

	// Of the goroutine that reads.
	unread     int // bytes of the preface, or of a frame's payload, that are passed on as they are
	header     [frameHeaderLen]byte
	ready      []byte // what was read and is to be passed on first
	lastStream uint32 // the highest stream that the client has opened

	maxFrame    atomic.Uint32 // SETTINGS_MAX_FRAME_SIZE of the client
	smallTable  atomic.Bool   // the client has a dynamic table of less than its default, which the next header section must tell
	goingAway   atomic.Bool   // a GOAWAY was sent: golang.org/x/net may ignore streams without a word
	streamsMu   sync.Mutex
	noHeaderYet []uint32 // open streams that no header was sent on

	http2Output
}

const (
	frameHeaderLen  = 9
	defaultMaxFrame = 1 << 14
	defaultTable    = 1 << 12
	// maxSettings bounds the settings of a frame that is looked at. golang.org/x/net refuses one with more than 100.
	maxSettings = 100
	settingLen  = 6
	// maxNoHeaderYet bounds noHeaderYet. On further streams a malformed request is reset only.
	maxNoHeaderYet = 1024
)

// newHTTP2Conn returns the connection on rwc. prefaced reports whether the client's preface was read.
func newHTTP2Conn(rwc net.Conn, prefaced bool) net.Conn {
	c := &http2Conn{Conn: rwc}
	c.maxFrame.Store(defaultMaxFrame)
	if !prefaced {
		c.unread = len(http2.ClientPreface)
	}
	if secure, ok := rwc.(connectionStater); ok {
		return &secureHTTP2Conn{c, secure}
	}
	return c
}

type connectionStater interface{ ConnectionState() tls.ConnectionState }

// secureHTTP2Conn is a connection over TLS, by whose state golang.org/x/net refuses ciphers.
type secureHTTP2Conn struct {
	*http2Conn
	connectionStater
}

// clientConn returns the connection that a http2Conn is on.
func clientConn(c net.Conn) net.Conn {
	switch s := c.(type) {
	case *secureHTTP2Conn:
		return s.Conn
	case *http2Conn:
		return s.Conn
	}
	return c
}

// frame is the header of a frame.
type frame struct {
	length int
	kind   http2.FrameType
	flags  http2.Flags
	stream uint32
}

func parseFrame(b []byte) frame {
	return frame{int(b[0])<<16 | int(b[1])<<8 | int(b[2]), http2.FrameType(b[3]), http2.Flags(b[4]),
		binary.BigEndian.Uint32(b[5:]) &^ (1 << 31)}
}

func appendFrame(b []byte, f frame) []byte {
	b = append(b, byte(f.length>>16), byte(f.length>>8), byte(f.length), byte(f.kind), byte(f.flags))
	return binary.BigEndian.AppendUint32(b, f.stream)
}

// Read returns what the client sends. It is not safe for concurrent use.
func (c *http2Conn) Read(b []byte) (int, error) {
	if len(c.ready) == 0 && c.unread == 0 {
		if err := c.nextFrame(); err != nil {
			return 0, err
		}
	}
	if len(c.ready) > 0 {
		n := copy(b, c.ready)
		c.ready = c.ready[n:]
		return n, nil
	}
	n, err := c.Conn.Read(b[:min(len(b), c.unread)])
	c.unread -= n
	return n, err
}

// nextFrame reads the header of a frame, and all of one of settings.
func (c *http2Conn) nextFrame() error {
	if _, err := io.ReadFull(c.Conn, c.header[:]); err != nil {
		return err
	}
	f := parseFrame(c.header[:])
	c.ready, c.unread = c.header[:], f.length
	switch f.kind {
	case http2.FramePushPromise:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	case http2.FrameHeaders:
		c.opened(f.stream)
	case http2.FrameRSTStream:
		c.takeNoHeaderYet(f.stream)
	case http2.FrameSettings:
		if !f.flags.Has(http2.FlagSettingsAck) && f.stream == 0 && f.length%settingLen == 0 && f.length <= maxSettings*settingLen {
			return c.readSettings(f)
		}
	}
	return nil
}

// readSettings reads a frame of settings, and passes it on with the last value of each.
func (c *http2Conn) readSettings(f frame) error {
	payload := make([]byte, f.length)
	if _, err := io.ReadFull(c.Conn, payload); err != nil {
		return err
	}
	settings := slices.Collect(slices.Chunk(payload, settingLen))
	kept := make([]byte, 0, frameHeaderLen+f.length)[:frameHeaderLen]
	for i, s := range settings {
		id := http2.SettingID(binary.BigEndian.Uint16(s))
		c.note(http2.Setting{ID: id, Val: binary.BigEndian.Uint32(s[2:])})
		again := func(other []byte) bool { return http2.SettingID(binary.BigEndian.Uint16(other)) == id }
		if !slices.ContainsFunc(settings[i+1:], again) {
			kept = append(kept, s...)
		}
	}
	f.length = len(kept) - frameHeaderLen
	appendFrame(kept[:0], f)
	c.ready, c.unread = kept, 0
	return nil
}

// note follows a setting of the client.
func (c *http2Conn) note(s http2.Setting) {
	switch {
	case s.ID == http2.SettingMaxFrameSize && s.Valid() == nil:
		c.maxFrame.Store(s.Val)
	case s.ID == http2.SettingHeaderTableSize && s.Val < defaultTable:
		c.smallTable.Store(true)
	}
}

// opened notes that the client has begun a header section, which opens a stream unless it is that of the trailers.
func (c *http2Conn) opened(stream uint32) {
	if stream <= c.lastStream {
		return
	}
	c.lastStream = stream
	if c.goingAway.Load() {
		return
	}
	c.streamsMu.Lock()
	defer c.streamsMu.Unlock()
	if len(c.noHeaderYet) < maxNoHeaderYet {
		c.noHeaderYet = append(c.noHeaderYet, stream)
	}
}

// awaitsHeader reports whether no header was sent on an open stream.
func (c *http2Conn) awaitsHeader(stream uint32) bool {
	c.streamsMu.Lock()
	defer c.streamsMu.Unlock()
	return slices.Contains(c.noHeaderYet, stream)
}

// takeNoHeaderYet reports whether no header was sent on an open stream, of which that is not true from now on.
func (c *http2Conn) takeNoHeaderYet(stream uint32) bool {
	c.streamsMu.Lock()
	defer c.streamsMu.Unlock()
	i := slices.Index(c.noHeaderYet, stream)
	if i < 0 {
		return false
	}
	last := len(c.noHeaderYet) - 1
	c.noHeaderYet[i] = c.noHeaderYet[last]
	c.noHeaderYet = c.noHeaderYet[:last]
	return true
}
