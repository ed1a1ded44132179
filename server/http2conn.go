package server

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
)

// http2Conn is a client's connection as golang.org/x/net sees it. It follows the frames of both sides, and changes what
// golang.org/x/net would do in four cases:
//
//   - A malformed request gets a 400 (RFC 9113 section 8.1.1), so that its client learns why its stream is reset.
//   - A header section of more than 16 KiB is sent in frames as large as the client accepts (section 6.5.2).
//   - A setting that one frame has twice has one value, usually the last (section 6.5.3).
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

	maxFrame   atomic.Uint32 // SETTINGS_MAX_FRAME_SIZE of the client
	maxStreams atomic.Uint32 // SETTINGS_MAX_CONCURRENT_STREAMS of the server
	smallTable atomic.Bool   // the client's dynamic table was less than its default: a header section has to begin with its size
	goingAway  atomic.Bool   // a GOAWAY was sent: golang.org/x/net may ignore streams without a word
	streamsMu  sync.Mutex
	streams    []stream // the open ones

	http2Output
}

const (
	frameHeaderLen  = 9
	defaultMaxFrame = 1 << 14
	defaultTable    = 1 << 12
	// maxSettings bounds the settings of a frame that is looked at. golang.org/x/net refuses one with more than 100.
	maxSettings = 100
	settingLen  = 6
	windowLen   = 4
	// maxOpen bounds the streams that are followed. On further ones a malformed request is reset only.
	maxOpen = 1024
)

// newHTTP2Conn returns the connection on rwc. prefaced reports whether the client's preface was read.
func newHTTP2Conn(rwc net.Conn, prefaced bool) net.Conn {
	c := &http2Conn{Conn: rwc}
	c.maxFrame.Store(defaultMaxFrame)
	c.maxStreams.Store(math.MaxUint32)
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

// nextFrame reads the header of a frame, and all of one of settings or of a stream's window.
func (c *http2Conn) nextFrame() error {
	if _, err := io.ReadFull(c.Conn, c.header[:]); err != nil {
		return err
	}
	f := parseFrame(c.header[:])
	c.ready, c.unread = c.header[:], f.length
	switch f.kind {
	case http2.FramePushPromise: // golang.org/x/net refuses that of no stream, and would wait for the payload
		appendFrame(c.header[:0], frame{kind: f.kind})
		c.unread = 0
	case http2.FrameHeaders:
		c.opened(f.stream)
		c.received(f)
	case http2.FrameData:
		c.received(f)
	case http2.FrameRSTStream:
		c.takeStream(f.stream)
	case http2.FrameWindowUpdate:
		if f.stream != 0 && f.length == windowLen {
			return c.readWindow(f)
		}
	case http2.FrameSettings:
		if !f.flags.Has(http2.FlagSettingsAck) && f.stream == 0 && f.length%settingLen == 0 && f.length <= maxSettings*settingLen {
			return c.readSettings(f)
		}
	}
	return nil
}

// readWindow reads a change of a stream's window. One of nothing is an error that golang.org/x/net resets the stream for, but
// does not make its request malformed.
func (c *http2Conn) readWindow(f frame) error {
	whole := append(make([]byte, 0, frameHeaderLen+windowLen), c.header[:]...)[:frameHeaderLen+windowLen]
	if _, err := io.ReadFull(c.Conn, whole[frameHeaderLen:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(whole[frameHeaderLen:])&^(1<<31) == 0 {
		c.setBegun(f.stream)
	}
	c.ready, c.unread = whole, 0
	return nil
}

// readSettings reads a frame of settings, and passes it on with one value of each.
func (c *http2Conn) readSettings(f frame) error {
	payload := make([]byte, f.length)
	if _, err := io.ReadFull(c.Conn, payload); err != nil {
		return err
	}
	settings := slices.Collect(slices.Chunk(payload, settingLen))
	kept := make([]byte, 0, frameHeaderLen+f.length)[:frameHeaderLen]
	for i, s := range settings {
		c.note(parseSetting(s))
		if settingCounts(settings, i) {
			kept = append(kept, s...)
		}
	}
	f.length = len(kept) - frameHeaderLen
	appendFrame(kept[:0], f)
	c.ready, c.unread = kept, 0
	return nil
}

func parseSetting(b []byte) http2.Setting {
	return http2.Setting{ID: http2.SettingID(binary.BigEndian.Uint16(b)), Val: binary.BigEndian.Uint32(b[2:])}
}

// settingCounts reports whether the setting at i is the one of its kind that counts: the last one (RFC 9113 section 6.5.3), of
// the table's sizes the least, to which the table has to shrink (RFC 7541 section 4.2).
func settingCounts(settings [][]byte, i int) bool {
	s := parseSetting(settings[i])
	for j, other := range settings {
		o := parseSetting(other)
		if o.ID != s.ID || j == i {
			continue
		}
		if sized := s.ID == http2.SettingHeaderTableSize; sized && o.Val < s.Val || j > i && (!sized || o.Val == s.Val) {
			return false
		}
	}
	return true
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
