package server

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/http1"
)

// Refusal is a request that the server has refused: it is malformed, too large or not supported.
type Refusal struct {
	// Status is that of the response.
	Status int
	// Err is the cause. Its text holds nothing of the request.
	Err error
	// RemoteAddr is the client's address, as in http.Request.
	RemoteAddr string
	// Line is the first line of the request as far as it was read, up to 4 KiB. It holds any bytes, but no line feed.
	Line string
}

// maxLine bounds Refusal.Line, as internal/http1 does.
const maxLine = 4 << 10

// refuseWithin bounds the time to write the response to a request that was refused.
const refuseWithin = 5 * time.Second

// refuse responds to a request that the handler does not see, if err is a *http1.Refused, and closes the connection for
// writing. The client may still be sending, so what it sends is read for a while.
func (c *conn) refuse(line string, err error) {
	var refused *http1.Refused
	if !errors.As(err, &refused) {
		return
	}
	text := fmt.Sprintf("%d %s: %s", refused.Status, http.StatusText(refused.Status), refused.Reason)
	_ = c.rwc.SetWriteDeadline(time.Now().Add(refuseWithin))
	_, err = fmt.Fprintf(c.rwc, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s",
		refused.Status, http.StatusText(refused.Status), text)
	if c.server.OnRefused != nil {
		c.server.OnRefused(&Refusal{Status: refused.Status, Err: refused, RemoteAddr: c.remoteAddr, Line: line})
	}
	if err == nil {
		c.linger()
	}
}
