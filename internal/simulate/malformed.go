package simulate

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// fate is the permitted outcome of a malformed request.
type fate int

const (
	// refused: no target sees anything of it, and the connection ends behind the response.
	refused fate = iota
	// declined: no target sees anything of it, but the connection may be kept, since it is clear where the request ends.
	declined
	// broken: its header is well-formed and its body is not. A target may see the request, but no end of its body.
	broken
	// tolerated: net/http's server is documented or known to accept it. Targets see the one request that it stands for.
	tolerated
)

// strict are the malformations that net/http's server tolerates and package server's does not.
var strict = map[string]fate{
	"a length beside chunked":      refused, // RFC 9112 section 6.3
	"a long length beside chunked": refused,
	"obs-fold":                     refused, // RFC 9112 section 5.2
	"a forged trailer":             broken,  // RFC 9110 section 6.5.1
}

// fateOf returns the permitted outcome of a malformation behind the gateway's server.
func (g *GatewayPlan) fateOf(m *malformation) fate {
	if f, ok := strict[m.name]; ok && g.Server {
		return f
	}
	return m.fate
}

// malformation is a way in which a request is malformed, or seems to be.
type malformation struct {
	name string
	fate fate
	// text returns the request, for which e.Method and e.Body are set.
	text func(e *ExchangePlan) string
}

// forbidden is a request after, or inside, a malformed one. A target that sees it breaks a rule, since no client has sent
// a request with this token.
func forbidden(e *ExchangePlan) string {
	return fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: gateway.test\r\n\r\n", 900_000_000+e.Token)
}

// next is a request that follows one after which the connection may be kept.
const next = "GET /0 HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n\r\n"

// lines is a request with the given header lines after Host, and the body.
func lines(e *ExchangePlan, body string, header ...string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: gateway.test\r\n%s\r\n\r\n%s", e.Method, e.target(), strings.Join(header, "\r\n"), body)
}

// with returns the text of requests without a body that have the given header lines.
func with(header ...string) func(*ExchangePlan) string {
	return func(e *ExchangePlan) string { return lines(e, "", header...) }
}

// begins returns the text of requests with another request line; %s is the request target.
func begins(line string) func(*ExchangePlan) string {
	return func(e *ExchangePlan) string {
		return strings.Replace(line, "%s", e.target(), 1) + "\r\nHost: gateway.test\r\n\r\n"
	}
}

// hosted returns the text of requests with other lines in place of Host.
func hosted(header string) func(*ExchangePlan) string {
	return func(e *ExchangePlan) string {
		return fmt.Sprintf("%s %s HTTP/1.1\r\n%s\r\n", e.Method, e.target(), header)
	}
}

// sized returns the text of requests whose body has the given header lines; %d is its length.
func sized(header ...string) func(*ExchangePlan) string {
	return func(e *ExchangePlan) string {
		text := strings.ReplaceAll(strings.Join(header, "\r\n"), "%d", fmt.Sprint(e.Body.Length))
		return lines(e, string(e.requestBody().Bytes(0, e.Body.Length)), text)
	}
}

// chunks returns the text of chunked requests; in body, %x is the length of the content, and %s the content.
func chunks(body string, header ...string) func(*ExchangePlan) string {
	return func(e *ExchangePlan) string {
		content := string(e.requestBody().Bytes(0, e.Body.Length))
		text := strings.ReplaceAll(strings.ReplaceAll(body, "%x", fmt.Sprintf("%x", e.Body.Length)), "%s", content)
		return lines(e, text, append([]string{"Transfer-Encoding: chunked"}, header...)...)
	}
}

// upgrade returns the text of requests for an upgrade with other lines than those of a WebSocket.
func upgrade(header ...string) func(*ExchangePlan) string {
	return with(append([]string{"Connection: Upgrade", "Upgrade: websocket"}, header...)...)
}

// malformed runs one malformed exchange on a connection of its own, perhaps after a good one, and followed by another
// request.
func (c *client) malformed(e *ExchangePlan) {
	m := &malformations[e.Malformed]
	o := c.world.journal.outcome(e.Token)
	c.world.journal.manners.Add("malformed: "+m.name, 1)
	defer func() {
		o.Ended = time.Now()
		c.note(e, "%s: saw %d of attempt %d, %d bytes, whole %v, %v", m.name, o.Status, o.Attempt, o.Got, o.Whole, o.Err)
	}()
	conn := c.dial()
	if conn == nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(c.patience(e)))
	in := &byteCounter{Reader: conn}
	r := bufio.NewReader(in)
	if e.After && !c.goodBefore(conn, r) {
		return
	}
	text := m.text(e)
	if f := c.world.plan.Gateway.fateOf(m); f == refused || f == broken {
		text += forbidden(e)
	} else {
		text += next
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.WriteString(conn, text); err != nil {
			c.note(e, "malformed: %v", err)
		}
	}()
	if c.receive(conn, in, r, e, o) {
		_ = conn.SetReadDeadline(time.Now().Add(min(time.Minute, c.world.longest)))
		c.readNext(r, e, m)
	}
	conn.Close()
	<-sent
}

// goodBefore exchanges a well-formed request first, and reports whether the connection is kept.
func (c *client) goodBefore(conn duplex, r *bufio.Reader) bool {
	if _, err := io.WriteString(conn, "GET /0 HTTP/1.1\r\nHost: gateway.test\r\n\r\n"); err != nil {
		return false
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && !resp.Close
}

// readNext reads what follows the response to a malformed request.
func (c *client) readNext(r *bufio.Reader, e *ExchangePlan, m *malformation) {
	resp, err := http.ReadResponse(r, nil)
	if f := c.world.plan.Gateway.fateOf(m); err == nil && (f == refused || f == broken) {
		c.world.journal.Break("malformed", "%s #%d, %s: the connection is kept, with the response %d", c.name, e.Token, m.name, resp.StatusCode)
	}
}

// newMalformation chooses how the request is malformed.
func newMalformation(c *Choices, e *ExchangePlan) {
	e.Malformed, e.After = c.Int(len(malformations)), c.Bool(3)
	e.Method, e.Header, e.Key = "GET", nil, false
	if withContent()[e.Malformed] {
		e.Method = "POST"
		e.Body.Length = int64(Pick(c, 100, 10, 5000))
	}
}

// withContent says of each malformation whether it has a body.
var withContent = sync.OnceValue(func() (list []bool) {
	e := ExchangePlan{Token: 1, Body: BodyPlan{Length: 100}}
	content := string(e.requestBody().Bytes(0, 100))
	for i := range malformations {
		list = append(list, strings.Contains(malformations[i].text(&e), content))
	}
	return list
})
