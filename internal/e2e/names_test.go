package e2e

import (
	"net"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// startNames starts a name server that says 127.0.0.1 for every name in .test, and that
// there is no other. alias.test is an alias, for which it can't say more, and it fails for ill.test.
func startNames(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := replyTo(buf[:n]); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	})
	t.Cleanup(func() {
		conn.Close()
		serving.Wait()
	})
	return conn.LocalAddr().String()
}

func replyTo(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	record := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60}}
	switch {
	case q.Name.String() == "ill.test.":
		reply.RCode = dnsmessage.RCodeServerFailure
	case q.Name.String() == "alias.test.":
		record.Body = &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName("app.test.")}
		reply.Answers = []dnsmessage.Resource{record}
	case !strings.HasSuffix(strings.ToLower(q.Name.String()), ".test."):
		reply.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		record.Body = &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}
		reply.Answers = []dnsmessage.Resource{record}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}
