// Package proxyproto writes and reads the header of the PROXY protocol, versions 1 and 2
// (www.haproxy.org/download/3.0/doc/proxy-protocol.txt), by which a proxy names the client of a connection.
package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Header is what a header says. The zero Header is that of a connection whose client is not known.
type Header struct {
	// Local reports whether the connection is the proxy's own, for a health check for instance. Version 1 does not
	// distinguish it from one of an unknown client.
	Local bool
	// Client and Server are the ends of the connection that the proxy has accepted. They are not valid if the client is not known,
	// or no client of TCP.
	Client, Server netip.AddrPort
	// TLVs are the bytes that follow the addresses of a header of version 2: types, lengths and values (section 2.2), not checked.
	// They are read only: Append2 does not write them.
	TLVs string
}

// signature begins a header of version 2.
const signature = "\r\n\r\n\x00\r\nQUIT\n"

const (
	prefix1  = "PROXY "
	most1    = 107     // the length of a header of version 1, its CRLF included
	fixed2   = 16      // the length of one of version 2, without addresses
	most2    = 4 << 10 // the length of one of version 2 that is read, as nginx's
	ends4    = 4 + 4 + 2 + 2
	ends6    = 16 + 16 + 2 + 2
	local2   = 0x20 // version and command
	proxy2   = 0x21
	unspec   = 0x00 // family and transport
	tcp4     = 0x11
	tcp6     = 0x21
	unknown1 = "PROXY UNKNOWN\r\n"
)

// Append1 appends h in version 1.
func (h Header) Append1(b []byte) []byte {
	client, server, ok := h.ends()
	if !ok {
		return append(b, unknown1...)
	}
	family := "TCP6 "
	if client.Addr().Is4() {
		family = "TCP4 "
	}
	b = append(append(b, prefix1...), family...)
	b = append(client.Addr().AppendTo(b), ' ')
	b = append(server.Addr().AppendTo(b), ' ')
	b = append(strconv.AppendUint(b, uint64(client.Port()), 10), ' ')
	return append(strconv.AppendUint(b, uint64(server.Port()), 10), "\r\n"...)
}

// Append2 appends h in version 2.
func (h Header) Append2(b []byte) []byte {
	b = append(b, signature...)
	client, server, ok := h.ends()
	switch {
	case h.Local:
		return append(b, local2, unspec, 0, 0)
	case !ok:
		return append(b, proxy2, unspec, 0, 0)
	case client.Addr().Is4():
		b = append(b, proxy2, tcp4, 0, ends4)
	default:
		b = append(b, proxy2, tcp6, 0, ends6)
	}
	b = append(b, client.Addr().AsSlice()...)
	b = append(b, server.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, client.Port())
	return binary.BigEndian.AppendUint16(b, server.Port())
}

// ends returns the ends as addresses of one family. ok is false if the client is not known. An unknown server is the
// unspecified address; ends of different families are both sent as IPv6 addresses, as HAProxy does.
func (h Header) ends() (client, server netip.AddrPort, ok bool) {
	if h.Local || !h.Client.IsValid() {
		return client, server, false
	}
	from, to := h.Client.Addr().Unmap().WithZone(""), h.Server.Addr().Unmap().WithZone("")
	switch {
	case !to.IsValid() && from.Is4():
		to = netip.IPv4Unspecified()
	case !to.IsValid():
		to = netip.IPv6Unspecified()
	case from.Is4() != to.Is4():
		from, to = netip.AddrFrom16(from.As16()), netip.AddrFrom16(to.As16())
	}
	return netip.AddrPortFrom(from, h.Client.Port()), netip.AddrPortFrom(to, h.Server.Port()), true
}

var errNoHeader = errors.New("no header of the PROXY protocol")

// Parse reads the header at the beginning of b. n is its length, or 0 if b is too short for all of it. What is
// neither TCP over IPv4 nor over IPv6 is a client that is not known.
func Parse(b []byte) (h Header, n int, err error) {
	switch {
	case begins(b, prefix1):
		return parse1(b)
	case begins(b, signature):
		return parse2(b)
	}
	return h, 0, errNoHeader
}

// begins reports whether b begins with prefix, or may if there is more of it.
func begins(b []byte, prefix string) bool {
	n := min(len(b), len(prefix))
	return string(b[:n]) == prefix[:n]
}

func parse1(b []byte) (h Header, n int, err error) {
	end := bytes.Index(b[:min(len(b), most1)], []byte("\r\n"))
	if end < 0 {
		if len(b) >= most1 {
			return h, 0, fmt.Errorf("a header of the PROXY protocol of more than %d bytes", most1)
		}
		if protocol := b[min(len(prefix1), len(b)):]; len(protocol) > 0 && !begins(protocol, "UNKNOWN") && !begins(protocol, "TCP4 ") && !begins(protocol, "TCP6 ") {
			return h, 0, errNoHeader // no more bytes of this peer need be waited for
		}
		return h, 0, nil
	}
	n = end + 2
	words := strings.Split(string(b[:end]), " ")
	switch {
	case words[1] == "UNKNOWN": // what follows has no meaning
		return h, n, nil
	case len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6":
		return h, 0, fmt.Errorf("invalid header %q of the PROXY protocol", b[:end])
	}
	if h.Client, err = parseEnd(words[1], words[2], words[4]); err == nil {
		h.Server, err = parseEnd(words[1], words[3], words[5])
	}
	if err != nil {
		return Header{}, 0, fmt.Errorf("invalid header %q of the PROXY protocol: %w", b[:end], err)
	}
	return h, n, nil
}

var errFamily = errors.New("an address of another family")

func parseEnd(family, addr, port string) (end netip.AddrPort, err error) {
	a, err := netip.ParseAddr(addr)
	if err != nil {
		return end, err
	}
	if a.Is4() != (family == "TCP4") || a.Zone() != "" {
		return end, errFamily
	}
	p, err := strconv.ParseUint(port, 10, 16) // which takes no sign
	return netip.AddrPortFrom(a, uint16(p)), err
}

func parse2(b []byte) (h Header, n int, err error) {
	if len(b) < fixed2 {
		return h, 0, nil
	}
	command, family := b[12], b[13]
	n = fixed2 + int(binary.BigEndian.Uint16(b[14:]))
	switch {
	case command != local2 && command != proxy2:
		return h, 0, fmt.Errorf("version and command %#02x in a header of the PROXY protocol", command)
	case n > most2:
		return h, 0, fmt.Errorf("a header of the PROXY protocol of %d bytes", n)
	case len(b) < n:
		return h, 0, nil
	}
	ends := b[fixed2:n] // and what may follow them
	switch {
	case command == local2:
		h.Local = true
	case family == tcp4 && len(ends) >= ends4:
		h.Client = end(ends[0:4], ends[8:])
		h.Server = end(ends[4:8], ends[10:])
		h.TLVs = string(ends[ends4:])
	case family == tcp6 && len(ends) >= ends6:
		h.Client = end(ends[0:16], ends[32:])
		h.Server = end(ends[16:32], ends[34:])
		h.TLVs = string(ends[ends6:])
	case family == tcp4 || family == tcp6:
		return h, 0, errors.New("a header of the PROXY protocol that is too short for its addresses")
	}
	return h, n, nil
}

func end(addr, port []byte) netip.AddrPort {
	a, _ := netip.AddrFromSlice(addr)
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(port))
}
