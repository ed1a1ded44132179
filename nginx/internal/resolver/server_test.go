package resolver

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/culvert-go/culvert/internal/leaktest"
)

// nameserver is a name server on loopback, over UDP and TCP.
type nameserver struct {
	t    *testing.T
	addr string

	respond func(q query) [][]byte // is called by several goroutines

	mu      sync.Mutex
	queries []string // "A name", "A name over TCP"
}

// query is one that a nameserver has received.
type query struct {
	dnsmessage.Message
	kind, name string
	tcp        bool
}

// serve starts a nameserver that responds by respond.
func serve(t *testing.T, respond func(q query) [][]byte) *nameserver {
	t.Helper()
	leaktest.Check(t)
	udp, tcp := listen(t)
	s := &nameserver{t: t, addr: udp.LocalAddr().String(), respond: respond}
	var running sync.WaitGroup
	running.Go(func() { s.serveUDP(udp) })
	running.Go(func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			s.serveTCP(c)
		}
	})
	t.Cleanup(func() {
		udp.Close()
		tcp.Close()
		running.Wait()
	})
	return s
}

// listen returns sockets of both networks on the same free port.
func listen(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 100 {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if udp, err := net.ListenPacket("udp", tcp.Addr().String()); err == nil {
			return udp, tcp
		}
		tcp.Close()
	}
	t.Fatal("no port is free for both networks")
	return nil, nil
}

func (s *nameserver) serveUDP(c net.PacketConn) {
	data := make([]byte, 65535)
	for {
		n, from, err := c.ReadFrom(data)
		if err != nil {
			return
		}
		for _, message := range s.responses(data[:n], false) {
			if _, err := c.WriteTo(message, from); err != nil {
				return
			}
		}
	}
}

func (s *nameserver) serveTCP(c net.Conn) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		data := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, data); err != nil {
			return
		}
		for _, message := range s.responses(data, true) {
			if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)); err != nil {
				return
			}
		}
	}
}

func (s *nameserver) responses(data []byte, tcp bool) [][]byte {
	q := query{tcp: tcp}
	if err := q.Unpack(data); err != nil || len(q.Questions) != 1 {
		s.t.Errorf("a query of %x: %v", data, err)
		return nil
	}
	q.kind = strings.TrimPrefix(q.Questions[0].Type.String(), "Type")
	q.name = strings.TrimSuffix(q.Questions[0].Name.String(), ".")
	line := q.kind + " " + q.name
	if tcp {
		line += " over TCP"
	}
	s.mu.Lock()
	s.queries = append(s.queries, line)
	s.mu.Unlock()
	return s.respond(q)
}

// received returns the queries until now.
func (s *nameserver) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.queries...)
}

// response returns a message with records, each as "name ttl type data". One that is the name of a code makes it an error, and
// TRUNCATED truncates it.
func (q query) response(records ...string) []byte {
	m := q.Message
	m.Response, m.RecursionAvailable = true, true
	codes := map[string]dnsmessage.RCode{"FORMERR": 1, "SERVFAIL": 2, "NXDOMAIN": 3, "NOTIMP": 4, "REFUSED": 5, "YXDOMAIN": 6}
	for _, record := range records {
		if code, ok := codes[record]; ok {
			m.RCode = code
		} else if record == "TRUNCATED" {
			m.Truncated = true
		} else {
			m.Answers = append(m.Answers, parseRecord(record))
		}
	}
	data, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return data
}

func parseRecord(text string) dnsmessage.Resource {
	f := strings.Fields(text)
	ttl, err := strconv.ParseUint(f[1], 10, 32)
	if err != nil {
		panic(err)
	}
	r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(f[0] + "."), Class: dnsmessage.ClassINET, TTL: uint32(ttl)}}
	switch f[2] {
	case "A":
		r.Body = &dnsmessage.AResource{A: netip.MustParseAddr(f[3]).As4()}
	case "AAAA":
		r.Body = &dnsmessage.AAAAResource{AAAA: netip.MustParseAddr(f[3]).As16()}
	case "CNAME":
		r.Body = &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(f[3] + ".")}
	case "TXT":
		r.Body = &dnsmessage.TXTResource{TXT: f[3:]}
	case "SRV":
		var body dnsmessage.SRVResource
		if _, err := fmt.Sscan(strings.Join(f[3:6], " "), &body.Priority, &body.Weight, &body.Port); err != nil {
			panic(err)
		}
		body.Target = dnsmessage.MustNewName(f[6] + ".")
		r.Body = &body
	default:
		panic(text)
	}
	return r
}

// zone responds with the records of a name and type, by "TYPE name", and with none for others.
func zone(records map[string][]string) func(query) [][]byte {
	return func(q query) [][]byte { return [][]byte{q.response(records[q.kind+" "+strings.ToLower(q.name)]...)} }
}
