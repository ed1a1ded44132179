package simulate

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// interim returns an interim response.
func (r *ResponsePlan) interim(token uint32) string {
	padding := ""
	if r.Padding > 0 {
		padding = "X-Padding: " + strings.Repeat("p", r.Padding) + "\r\n"
	}
	return fmt.Sprintf("HTTP/1.1 103 Early Hints\r\nLink: </%d>\r\n%s\r\n", token, padding)
}

// hasInterim reports whether interim responses precede the response, including those of oddities.
func (r *ResponsePlan) hasInterim() bool {
	return r.Interim > 0 || r.Odd > 0 && oddities[r.Odd-1].isInterim() || r.OddFrames > 0 && frameOddities[r.OddFrames-1].isInterim()
}

// isInterim reports whether the oddity is one of interim responses.
func (o *oddity) isInterim() bool { return strings.Contains(o.name, "interim response") }

// tooLong reports whether the headers of a response, including interim ones, may exceed upstream.Options.MaxHeaderBytes. That of
// the final response is shorter than 1 KiB.
func (r *ResponsePlan) tooLong(token uint32) bool {
	return r.Interim*len(r.interim(token)) > 63<<10
}

// drip writes a header section in the plan's pieces, and pauses after it.
func (t *target) drip(c *Conn, header string, r *ResponsePlan, bodyless bool) error {
	for r.Drip > 0 && len(header) > drop {
		if _, err := io.WriteString(c, header[:drop]); err != nil {
			return err
		}
		header = header[drop:]
		t.world.sleep(r.Drip)
	}
	_, err := io.WriteString(c, header)
	if !bodyless && r.Body.Length > 0 { // else the next request may already be on the connection
		t.world.sleep(r.HeaderPause)
	}
	return err
}

// drop is the size of a piece of a header section that drips.
const drop = 25

// linger keeps a connection open for a while after a response with "Connection: close": "a client that receives a close
// option MUST cease sending requests on that connection" (RFC 9112 section 9.6).
func (t *target) linger(c *Conn, r *ResponsePlan, s *Sight, in *bufio.Reader) {
	if !r.Close || r.Early || !s.Whole || r.Linger == 0 {
		return // bytes may be the rest of a request that has broken off
	}
	_ = c.SetReadDeadline(time.Now().Add(r.Linger))
	if p, _ := in.Peek(1); len(p) > 0 {
		t.world.journal.Break("close", "%s got more on a connection whose last response said close", t.plan.Addr)
	}
}

// withForbidden returns trailers with one that must not be sent.
func withForbidden(trailer [][2]string, name string) [][2]string {
	if name == "" {
		return trailer
	}
	return append(trailer[:len(trailer):len(trailer)], [2]string{name, forbiddenValue})
}

// forbiddenValue is the value of a trailer that must not arrive.
const forbiddenValue = "smuggled"
