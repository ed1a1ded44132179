// Package cgi has what FastCGI, SCGI and uwsgi share: parameters, and the header of a response (RFC 3875 section 6).
package cgi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/fieldnames"
)

// Param is a parameter of a request.
type Param struct{ Name, Value string }

// Fields returns the parameters that stand for header fields: HTTP_ and the name, in the order in which the client has sent them, if
// the server keeps that; Host is not among them. connection are the lines of Connection, which r lacks. Those of leftOut are left out; its names are in lower
// case, with underscores, as "x_forwarded_for". So is Proxy, since programs take HTTP_PROXY for a setting of their own (CVE-2016-5385).
func Fields(r *http.Request, connection []string, leftOut map[string]bool) []Param {
	fields := http.Header{}
	maps.Copy(fields, r.Header)
	delete(fields, "Connection") // which names only an upgrade there
	delete(fields, "Host")
	if len(connection) > 0 {
		fields["Connection"] = connection
	}
	names := fieldnames.Of(r.Context())
	if names.Has("Transfer-Encoding") { // of a body that has a length now, too
		fields["Transfer-Encoding"] = []string{"chunked"}
	}
	list := make([]Param, 0, len(fields))
	add := func(name string) {
		lines := fields[name]
		delete(fields, name)
		sep := ", "
		if name == "Cookie" {
			sep = "; "
		}
		name = strings.ReplaceAll(name, "-", "_")
		if lower := strings.ToLower(name); len(lines) > 0 && !leftOut[lower] && lower != "proxy" {
			list = append(list, Param{"HTTP_" + strings.ToUpper(name), strings.Join(lines, sep)})
		}
	}
	for _, name := range names {
		add(http.CanonicalHeaderKey(name))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		add(name)
	}
	return list
}

// maxHeader bounds the header of a response.
const maxHeader = 64 << 10

var errTooLarge = errors.New("upstream sent too big header")

// ReadHeader reads the header of a response, whose lines may end in a line feed alone. A status line of HTTP in front of it is
// taken if statusLine is set. The names of the fields are noted in ctx (package fieldnames). Without a status line, and without the field Status, the status is 200, or 302 with Location.
func ReadHeader(ctx context.Context, b *bufio.Reader, statusLine bool) (*http.Response, error) {
	resp := &http.Response{ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: -1}
	left, names := maxHeader, fieldnames.UpgradeOf(ctx)
	for first := true; ; first = false {
		line, err := readLine(b, &left)
		if err != nil {
			return nil, err
		}
		switch {
		case first && statusLine && strings.HasPrefix(line, "HTTP/"):
			_, status, _ := strings.Cut(line, " ")
			if err := setStatus(resp, status); err != nil {
				return nil, err
			}
		case line == "":
			err := finish(resp)
			if names != nil {
				names.Received.Status = resp.Status
			}
			return resp, err
		default:
			if err := addField(resp, line); err != nil {
				return nil, err
			}
			if names != nil {
				name, _, _ := strings.Cut(line, ":")
				names.Received.Names = append(names.Received.Names, name)
			}
		}
	}
}

func readLine(b *bufio.Reader, left *int) (string, error) {
	var line []byte
	for {
		piece, err := b.ReadSlice('\n')
		if *left -= len(piece); *left < 0 {
			return "", errTooLarge
		}
		line = append(line, piece...)
		switch {
		case err == nil:
			return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
		case err == io.EOF && *left < maxHeader:
			return "", io.ErrUnexpectedEOF
		case err != bufio.ErrBufferFull:
			return "", err
		}
	}
}

func addField(resp *http.Response, line string) error {
	name, value, ok := strings.Cut(line, ":")
	value = strings.Trim(value, " \t")
	if !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
		return errors.New("upstream sent invalid header")
	}
	name = http.CanonicalHeaderKey(name)
	resp.Header[name] = append(resp.Header[name], value)
	return nil
}

// setStatus takes a status code, with or without a text.
func setStatus(resp *http.Response, text string) error {
	code, _, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(code)
	if err != nil || len(code) != 3 || n < 200 {
		return fmt.Errorf("upstream sent invalid status %q", text)
	}
	resp.StatusCode, resp.Status = n, text
	return nil
}

// finish sets what follows from the fields.
func finish(resp *http.Response) error {
	if status := resp.Header["Status"]; status != nil && resp.StatusCode == 0 {
		if err := setStatus(resp, status[0]); err != nil {
			return err
		}
	}
	if resp.StatusCode == 0 {
		resp.StatusCode = http.StatusOK
		if resp.Header["Location"] != nil {
			resp.StatusCode = http.StatusFound
		}
	}
	if length := resp.Header["Content-Length"]; length != nil {
		n, err := strconv.ParseInt(length[0], 10, 64)
		if err != nil || n < 0 || len(length) > 1 {
			return errors.New("upstream sent invalid \"Content-Length\" header")
		}
		resp.ContentLength = n
	}
	delete(resp.Header, "Connection")
	delete(resp.Header, "Transfer-Encoding")
	return nil
}

// Body returns the content of a response that ends with its connection, or at its Content-Length: what follows that is dropped, as
// nginx does.
func Body(resp *http.Response, from io.Reader) io.ReadCloser {
	if resp.ContentLength < 0 {
		return io.NopCloser(from)
	}
	return io.NopCloser(&exact{from, resp.ContentLength})
}

// exact reads a number of bytes, whose lack is an error.
type exact struct {
	r    io.Reader
	left int64
}

func (e *exact) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.left)])
	e.left -= int64(n)
	switch {
	case e.left == 0:
		err = io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
