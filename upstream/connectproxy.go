package upstream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// maxConnectHeader bounds the header sections of the response to CONNECT, interim responses included.
const maxConnectHeader = 64 << 10

// connect opens a connection by CONNECT.
func (e *egress) connect(ctx context.Context, c net.Conn, addr string) error {
	status, sent := 0, false
	err := interruptible(ctx, c, func() (err error) {
		if err = writeConnect(c, addr, e.o.Header); err != nil {
			return err
		}
		sent = true
		status, err = readConnected(c)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return e.failure(!sent, 0, err) // it waits for the target, perhaps
	case err != nil:
		return e.failure(true, 0, err)
	case status/100 != 2:
		return e.failure(status < 500, status, fmt.Errorf("CONNECT %s: status %d %s", addr, status, http.StatusText(status)))
	}
	return nil
}

// writeConnect sends the request of a tunnel to addr, which is valid, as fields are.
func writeConnect(w io.Writer, addr string, fields http.Header) error {
	b := []byte("CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n")
	for name, values := range fields {
		for _, value := range values {
			b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
		}
	}
	_, err := w.Write(append(b, "\r\n"...))
	return err
}

var errConnectHeader = fmt.Errorf("the response to CONNECT has a header of more than %d bytes", maxConnectHeader)

// readConnected reads the response to CONNECT and returns its status. It reads nothing of what follows a response
// that opens the tunnel, which has no body, regardless of its header fields (RFC 9110 section 9.3.6).
func readConnected(c net.Conn) (status int, err error) {
	limit := &io.LimitedReader{R: byteReader{c}, N: maxConnectHeader}
	r := textproto.NewReader(bufio.NewReaderSize(limit, 16))
	for status < 200 {
		line, err := r.ReadLine()
		if err == nil {
			if status, err = parseStatusLine(line); err != nil {
				return 0, err
			}
			_, err = r.ReadMIMEHeader()
		}
		switch {
		case err != nil && limit.N <= 0:
			return 0, errConnectHeader
		case err == io.EOF:
			return 0, io.ErrUnexpectedEOF
		case err != nil:
			return 0, fmt.Errorf("the response to CONNECT: %w", err)
		}
	}
	return status, nil
}

// parseStatusLine returns the status of a status line. 101 is none that CONNECT can have.
func parseStatusLine(line string) (status int, err error) {
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	if major, _, ok := http.ParseHTTPVersion(version); ok && major == 1 && len(code) == 3 {
		status, err = strconv.Atoi(code)
		if err == nil && status >= 100 && status != http.StatusSwitchingProtocols {
			return status, nil
		}
	}
	return 0, fmt.Errorf("%.64q in response to CONNECT is no valid status line", line)
}

// byteReader reads a byte at a time.
type byteReader struct{ r io.Reader }

// Read implements io.Reader.
func (b byteReader) Read(p []byte) (int, error) { return b.r.Read(p[:min(len(p), 1)]) }
