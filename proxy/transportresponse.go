package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/replay"
)

// checkInterim refuses what is no interim response of a transport. HTTP/2 knows no 101 (RFC 9113 section 8.6), which net/http's
// transport takes for an interim response there.
func checkInterim(status int, fields textproto.MIMEHeader) error {
	if status == http.StatusSwitchingProtocols {
		return errors.New("status 101 as an interim response")
	}
	_, err := http1.ContentLength(fields["Content-Length"])
	return err
}

// checkFinal refuses a transport's response that is no final one, whose status code is not three digits (RFC 9110 section 15),
// or whose Content-Length is none, or contradicts what is known of its content (RFC 9110 section 8.6, RFC 9113 section 8.1.1).
// net/http's transport leaves that to its caller over HTTP/2: a field that is no number, or is there twice, is no length there. Several fields that are equal become one, as over
// HTTP/1.1. A ContentLength of 0 beside a Body is not known, as for http.Response.Write.
func checkFinal(resp *http.Response, method string) error {
	if resp.StatusCode < 200 || resp.StatusCode > 999 {
		return fmt.Errorf("status %03d", resp.StatusCode)
	}
	if code, ok := writtenCode(resp); ok && len(code) != 3 {
		return fmt.Errorf("status %q", code)
	}
	lines := resp.Header["Content-Length"]
	length, err := http1.ContentLength(lines)
	if err != nil {
		return err
	}
	if len(lines) > 1 {
		resp.Header["Content-Length"] = lines[:1]
	}
	if withoutContent(resp, method) {
		return nil // the length is what the content would have
	}
	if resp.ContentLength < 0 || resp.ContentLength == 0 && resp.Body != http.NoBody && (length > 0 || resp.ProtoMajor < 2) {
		resp.ContentLength = length // of a transport of the program's own, which has left it out
	}
	switch {
	case length >= 0 && length != resp.ContentLength:
		return fmt.Errorf("a Content-Length of %d, and %d bytes of content", length, resp.ContentLength)
	case resp.ContentLength > 0 && resp.Body == http.NoBody:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// writtenCode returns the status code of resp as its target has written it, where the transport keeps that, as net/http's does. Over
// HTTP/2 that one reads any number.
func writtenCode(resp *http.Response) (code string, ok bool) {
	code, _, _ = strings.Cut(resp.Status, " ")
	n, err := strconv.Atoi(code)
	return code, err == nil && n == resp.StatusCode
}

// withoutContent reports whether resp has no content, although its header may declare some.
func withoutContent(resp *http.Response, method string) bool {
	return method == http.MethodHead || resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified
}

// awaitEmpty reads to the end of a body that was declared as empty, before the client gets the header: with content the
// response is malformed, and would look whole. Over HTTP/1.1 net/http's transport has http.NoBody there, but one of the
// program's own may have content.
func awaitEmpty(resp *http.Response, method string) error {
	if resp.Header["Content-Length"] == nil || resp.ContentLength != 0 || withoutContent(resp, method) {
		return nil
	}
	return replay.AwaitEnd(resp.Body)
}

// exactBody is a body of a declared length. What it has read together with the last byte is given when the body has ended: a
// response that has more content than it declares, or does not come to its end, must not look whole to the client.
type exactBody struct {
	io.ReadCloser
	left int64
	err  error // behind what was read
}

// Read implements io.Reader.
func (b *exactBody) Read(p []byte) (n int, err error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, b.err = b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case b.left > 0 && b.err == io.EOF:
		b.err = io.ErrUnexpectedEOF
	case b.left == 0 && b.err == nil:
		if b.err = replay.AwaitEnd(b.ReadCloser); b.err == nil {
			b.err = io.EOF
		}
	}
	if b.left == 0 && b.err != io.EOF {
		n = max(0, n-1)
	}
	return n, b.err
}
