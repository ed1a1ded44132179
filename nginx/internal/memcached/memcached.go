// Package memcached gets values from memcached, by its text protocol.
package memcached

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/nginx/internal/backend"
)

// Options are those of a Protocol.
type Options struct {
	// Key returns the key of a request, "" if it has none.
	Key func(*http.Request) string
	// GzipFlag is the flag of values that are compressed, whose responses have Content-Encoding: gzip; 0 means none.
	GzipFlag uint32
}

// Protocol returns the protocol. The status of a key without a value is 404.
func Protocol(o Options) backend.Protocol { return protocol{o} }

type protocol struct{ o Options }

// maxKey is memcached's bound of a key.
const maxKey = 250

var (
	errNoKey   = errors.New("the \"$memcached_key\" variable is not set")
	errLongKey = errors.New("a key of more than 250 bytes")
)

// Prepare implements backend.Protocol.
func (p protocol) Prepare(r *http.Request) (func(*bufio.Writer) error, error) {
	key := escape(p.o.Key(r))
	switch {
	case key == "":
		return nil, errNoKey
	case len(key) > maxKey:
		return nil, errLongKey
	}
	return func(w *bufio.Writer) error {
		_, err := w.WriteString("get " + key + "\r\n")
		return err
	}, nil
}

// escape encodes blanks, control characters and percent signs: a key must not end the command, or begin another one.
func escape(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c == 0x7f || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// ReadResponse implements backend.Protocol.
func (p protocol) ReadResponse(b *bufio.Reader, r *http.Request) (*http.Response, func() bool, error) {
	line, err := b.ReadSlice('\n')
	if err != nil {
		return nil, nil, err
	}
	resp := &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}}
	if string(line) == "END\r\n" {
		resp.StatusCode, resp.Body = http.StatusNotFound, http.NoBody
		resp.Header.Set("Content-Length", "0")
		return resp, func() bool { return true }, nil
	}
	fields := strings.Split(strings.TrimSuffix(string(line), "\r\n"), " ")
	if len(fields) != 4 || fields[0] != "VALUE" || fields[1] != escape(p.o.Key(r)) {
		return nil, nil, fmt.Errorf("memcached sent invalid response: %q", line)
	}
	flags, flagsErr := strconv.ParseUint(fields[2], 10, 32)
	length, lengthErr := strconv.ParseInt(fields[3], 10, 64)
	if err := errors.Join(flagsErr, lengthErr); err != nil || length < 0 {
		return nil, nil, fmt.Errorf("memcached sent invalid response: %q", line)
	}
	if uint32(flags)&p.o.GzipFlag != 0 {
		resp.Header.Set("Content-Encoding", "gzip")
	}
	resp.ContentLength = length
	resp.Header.Set("Content-Length", fields[3])
	v := &value{b: b, left: length}
	resp.Body = io.NopCloser(v)
	return resp, func() bool { return v.whole }, nil
}

// value is the content, which a line break and END follow.
type value struct {
	b     *bufio.Reader
	left  int64
	whole bool
}

// Read implements io.Reader.
func (v *value) Read(p []byte) (int, error) {
	if v.left > 0 {
		n, err := v.b.Read(p[:min(int64(len(p)), v.left)])
		if v.left -= int64(n); err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	}
	var end [len("\r\nEND\r\n")]byte
	if _, err := io.ReadFull(v.b, end[:]); err != nil || string(end[:]) != "\r\nEND\r\n" {
		return 0, errors.New("memcached sent invalid trailer")
	}
	v.whole = true
	return 0, io.EOF
}
