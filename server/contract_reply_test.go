package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
)

// probe is a request behind another one. A server that serves it has kept the connection, and has found the end of the
// other one.
const (
	probe      = "GET /probe HTTP/1.1\r\nHost: a\r\n\r\n"
	probeReply = "HTTP/1.1 204 No Content|X-Probe: 1"
)

// withProbe serves probes, and other requests by h.
func withProbe(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/probe" {
			h(w, r)
			return
		}
		w.Header().Set("X-Probe", "1")
		w.WriteHeader(http.StatusNoContent)
	}
}

// exchange sends requests and a probe behind them over one connection, and half-closes it. It returns the responses,
// each as replies has them, and whether the probe was served.
func exchange(t testing.TB, addr, requests string) (received []string, kept bool) {
	t.Helper()
	p := wiretest.Dial(t, addr)
	_, _ = io.WriteString(p, requests+probe) // an error: the server has closed the connection meanwhile
	_ = p.Conn.(interface{ CloseWrite() error }).CloseWrite()
	method, _, _ := strings.Cut(requests, " ")
	received = replies(p.Ended(), method)
	if last := len(received) - 1; last >= 0 && received[last] == probeReply {
		return received[:last], true
	}
	return received, false
}

// replies cuts what a client has received into responses, to requests with the methods; others are no HEAD. Each
// response is its lines joined with "|", the fields of its header sorted and without the Date; behind "||" the body
// without its coding, and behind another "||" the trailers. What is not a whole response follows as "BROKEN: " and the
// rest.
func replies(stream string, methods ...string) (all []string) {
	r := bufio.NewReader(strings.NewReader(stream))
	for {
		if _, err := r.Peek(1); err != nil {
			return all
		}
		s, interim, err := reply(r, len(methods) > 0 && methods[0] == http.MethodHead)
		if err != nil {
			rest, _ := io.ReadAll(r)
			return append(all, fmt.Sprintf("%sBROKEN: %v %q", s, err, rest))
		}
		all = append(all, s)
		if !interim && len(methods) > 0 {
			methods = methods[1:]
		}
	}
}

// reply reads a response, to a HEAD or another request.
func reply(r *bufio.Reader, head bool) (s string, interim bool, err error) {
	header, err := section(r)
	s = shown(header)
	if err != nil {
		return s, false, err
	}
	var status int
	if _, err := fmt.Sscanf(header[0], "HTTP/1.%1d %3d ", new(int), &status); err != nil {
		return s, false, fmt.Errorf("status line: %w", err)
	}
	if status < 200 {
		return s, true, nil
	}
	if head || status == http.StatusNoContent || status == http.StatusNotModified {
		return s, false, nil
	}
	body, trailers, err := content(r, header[1:])
	if body != "" || len(trailers) > 0 || err != nil {
		s += "||" + body
	}
	if len(trailers) > 0 {
		s += "||" + shown(append([]string{""}, trailers...))[1:]
	}
	return s, false, err
}

// section reads lines up to an empty one.
func section(r *bufio.Reader) (lines []string, err error) {
	for {
		line, err := crlfLine(r)
		if err != nil || line == "" {
			return lines, err
		}
		lines = append(lines, line)
	}
}

func crlfLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return line, io.ErrUnexpectedEOF
	}
	bare, ok := strings.CutSuffix(line, "\r\n")
	if !ok {
		return line, fmt.Errorf("line %q", line)
	}
	return bare, nil
}

// shown joins the lines of a header section, sorted behind the first one and without a Date that is right.
func shown(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	fields := slices.DeleteFunc(slices.Clone(lines[1:]), func(line string) bool {
		date, ok := strings.CutPrefix(line, "Date: ")
		_, err := http.ParseTime(date)
		return ok && err == nil
	})
	slices.Sort(fields)
	return strings.Join(append([]string{lines[0]}, fields...), "|")
}

// content reads a body, framed as the fields declare.
func content(r *bufio.Reader, fields []string) (body string, trailers []string, err error) {
	length, chunked := -1, false
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		switch strings.ToLower(name) {
		case "content-length":
			if length, err = strconv.Atoi(value); err != nil {
				return "", nil, err
			}
		case "transfer-encoding":
			if chunked = value == "chunked"; !chunked {
				return "", nil, fmt.Errorf("coding %q", value)
			}
		}
	}
	switch {
	case chunked && length >= 0:
		return "", nil, fmt.Errorf("a length beside chunks")
	case chunked:
		return chunks(r)
	case length >= 0:
		b := make([]byte, length)
		n, err := io.ReadFull(r, b)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return string(b[:n]), nil, err
	}
	b, err := io.ReadAll(r)
	return string(b), nil, err
}

// chunks reads a chunked body and its trailers.
func chunks(r *bufio.Reader) (body string, trailers []string, err error) {
	var b strings.Builder
	for {
		line, err := crlfLine(r)
		if err != nil {
			return b.String(), nil, err
		}
		size, err := strconv.ParseUint(line, 16, 31)
		if err != nil {
			return b.String(), nil, err
		}
		if size == 0 {
			trailers, err = section(r)
			return b.String(), trailers, err
		}
		if _, err := io.CopyN(&b, r, int64(size)); err != nil {
			return b.String(), nil, io.ErrUnexpectedEOF
		}
		if end, err := crlfLine(r); err != nil || end != "" {
			return b.String(), nil, fmt.Errorf("chunk ends with %q, %v", end, err)
		}
	}
}
