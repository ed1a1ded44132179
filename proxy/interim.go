package proxy

import (
	"net/http"
	"net/textproto"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/deadline"
	"github.com/culvert-go/culvert/internal/header"
)

// interimRelay relays interim responses as they are received. The proxy's own exchange relays them itself, and a transport's
// calls queue (interimqueue.go).
type interimRelay struct {
	client  *clientside.Handle
	in      *http.Request
	body    *clientbody.Body // of in, which may have to be sent a 100 at the same time
	timeout time.Duration    // of a write, 0 for none
	began   time.Time        // of the forwarding
	slow    *interimTime     // of the attempt
	room    int64            // left for the headers of interim responses, where the transport bounds each alone; 0: it bounds them all
	full    bool             // room was exceeded
	drop    *bool            // Outbound.DropInterim
	later   interimQueue
}

// relay sends one interim response, on the handler's goroutine.
func (i *interimRelay) relay(status int, fields textproto.MIMEHeader) {
	if i.wanted(status) {
		begun := time.Now()
		i.send(status, interimFields(status, fields))
		i.slow.add(begun)
	}
}

// interimFields returns a copy of those fields that are for the client.
func interimFields(status int, fields textproto.MIMEHeader) http.Header {
	h := http.Header(fields).Clone()
	header.SanitizeResponse(status, h, "")
	return h
}

// take subtracts the length of an interim response from room, and reports whether it fits.
func (i *interimRelay) take(status int, fields textproto.MIMEHeader) bool {
	if i.room == 0 {
		return true
	}
	n := len("HTTP/1.1 100 \r\n\r\n") + len(http.StatusText(status))
	for name, values := range fields {
		for _, value := range values {
			n += len(name) + len(value) + len(": \r\n")
		}
	}
	if i.full = i.full || int64(n) >= i.room; i.full {
		return false
	}
	i.room -= int64(n)
	return true
}

// send writes an interim response.
func (i *interimRelay) send(status int, fields http.Header) {
	i.body.WriteInterim(func() { i.write(status, fields) })
}

// write writes an interim response with the target's fields only.
func (i *interimRelay) write(status int, fields http.Header) {
	var writes deadline.Deadline
	writes.StartWrites(i.client, i.in, i.timeout)
	defer func() { // also where a filter's writer panics
		writes.End()
		writes.Restore(i.began) // or the final response would meet it
		writes.Stop()
	}()
	writes.Begin()
	_ = i.client.WriteInterim(status, fields)
}

// wanted reports whether the client gets the interim response. HTTP/1.0 has none (RFC 9110
// section 15.2). A 100 lets the transport read the body, and the first read sends the gateway's
// own.
func (i *interimRelay) wanted(status int) bool {
	return i.in.ProtoAtLeast(1, 1) && status != http.StatusContinue && !*i.drop
}
