package http1

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/fieldnames"
)

// Incoming is the header section of a request, as a server reads it. What a recipient may tolerate in a response it
// refuses: folded lines, blanks before a colon, doubt about where the request ends (RFC 9112 sections 5.1, 5.2 and 6.3).
type Incoming struct {
	Method, Target, Proto string
	Major, Minor          int
	Fields                http.Header
	// Map is the empty map that Fields becomes; nil means a new one.
	Map http.Header
	// KeepNames has Names filled: those of Fields as the client has spelt them.
	KeepNames bool
	Names     fieldnames.List
	// Size is how many bytes the section has.
	Size int
	// Memory is for the values of Fields and for Names, if they fit. It is used for one request.
	Memory []string

	header      header
	lineChecked bool // by checkBeginning
}

// Read reads a header section of max bytes at most from r, and not a byte more. w is called before a read for what was not
// received yet. The error is a *Refused, or that of r: an io.EOF has become an io.ErrUnexpectedEOF. received is the first
// line of the header then, as far as it was read. in has what was understood of the request: Fields is nil if the request
// line was not.
func (in *Incoming) Read(r *bufio.Reader, max int, w Waiter) (received string, err error) {
	in.header.request = in
	text, err := in.header.collect(r, max, w)
	in.Size = len(text)
	if err != nil {
		_ = in.parse(string(text[:bytes.LastIndexByte(text, '\n')+1]))
		if err == ErrHeaderTooLarge {
			err = tooLarge(text, max)
		}
		return firstLine(text), err
	}
	if err := in.parse(string(text)); err != nil {
		return firstLine(text), err
	}
	return "", nil
}

// checkBeginning refuses what no request begins with, when its rest was not received yet: the client may wait for a response
// to what is no HTTP, and never send an empty line.
func (in *Incoming) checkBeginning(received []byte) error {
	if in == nil || in.lineChecked || len(received) == 0 {
		return nil
	}
	end := bytes.IndexByte(received, '\n')
	if end < 0 {
		if !httpguts.IsTokenRune(rune(received[0])) {
			return ErrRequestLine
		}
		return nil
	}
	in.lineChecked = true
	line, _ := cutLine(string(received[:end]))
	return in.requestLine(line)
}

// tooLarge tells a long request target from a long header section.
func tooLarge(text []byte, max int) error {
	if n := bytes.IndexByte(text, '\n'); n < 0 || n >= max {
		return ErrLineTooLong
	}
	return ErrFieldsTooLarge
}

// firstLine returns the beginning of the first line of text.
func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(text[:min(len(text), 4<<10)], []byte("\n"))
	return string(bytes.TrimSuffix(line, []byte("\r")))
}

// parse reads the request line and the fields.
func (in *Incoming) parse(all string) error {
	line, rest := cutLine(all)
	if err := in.requestLine(line); err != nil {
		return err
	}
	h := &in.header
	h.strict, h.memory, in.Memory = true, in.Memory, nil
	h.named = in.KeepNames
	if in.Fields = in.Map; in.Fields == nil {
		in.Fields = make(http.Header, min(max(strings.Count(rest, "\n")-1, 8), 100))
	}
	h.fields = in.Fields
	err := h.parseFields(rest)
	in.Names = h.names
	if err != nil {
		refused := *ErrField
		refused.Near = fault(rest)
		return &refused
	}
	h.fields, h.values, h.memory = nil, nil, nil
	return in.checkHost()
}

// requestLine reads method SP target SP version (RFC 9112 section 3).
func (in *Incoming) requestLine(line string) error {
	var ok1, ok2 bool
	var rest string
	in.Method, rest, ok1 = strings.Cut(line, " ")
	in.Target, in.Proto, ok2 = strings.Cut(rest, " ")
	if !ok1 || !ok2 || in.Target == "" || !httpguts.ValidHeaderFieldName(in.Method) { // both are tokens
		return ErrRequestLine
	}
	for i := range len(in.Target) {
		if c := in.Target[i]; c <= ' ' || c == 0x7f {
			return ErrTarget
		}
	}
	var ok bool
	if in.Major, in.Minor, ok = http.ParseHTTPVersion(in.Proto); !ok {
		return ErrVersion
	}
	if in.Major != 1 {
		return ErrOtherVersion
	}
	return nil
}

// checkHost checks the Host field (RFC 9112 section 3.2). As in net/http a CONNECT needs none, since its target is one.
func (in *Incoming) checkHost() error {
	hosts := in.Fields["Host"]
	switch {
	case len(hosts) > 1:
		return ErrManyHosts
	case len(hosts) == 0 && in.Minor > 0 && in.Method != http.MethodConnect:
		return ErrNoHost
	case len(hosts) == 1 && !httpguts.ValidHostHeader(hosts[0]):
		return ErrHost
	}
	return nil
}

// Framing is how a request's body ends.
type Framing struct {
	Chunked bool
	Length  int64       // if it is not chunked; 0 for no body
	Trailer http.Header // the announced trailers of a chunked body, without values; nil for none
	Close   bool        // the client ends the connection with the response
}

// Framing returns how the body ends, and removes the fields that declare it, as http.ReadRequest does. Two declarations are
// one too many: somewhere before us the request may have ended elsewhere (RFC 9112 section 6.3). The error is a *Refused.
func (in *Incoming) Framing() (f Framing, err error) {
	h := header{minor: in.Minor, fields: in.Fields}
	_, coded := h.fields["Transfer-Encoding"]
	lengths, declared := h.fields["Content-Length"]
	if coded && in.Minor == 0 {
		return f, ErrOldCoding
	}
	if f.Chunked, err = h.isChunked(); err != nil {
		return f, ErrCoding
	}
	switch {
	case coded && declared:
		return f, ErrBothLengths
	case declared:
		if f.Length, err = ContentLength(lengths); err != nil {
			return f, ErrLength
		}
		h.fields["Content-Length"] = lengths[:1]
	case coded:
		if f.Trailer, err = h.announced(); err != nil {
			return f, ErrTrailer
		}
	}
	f.Close = h.closes()
	return f, nil
}
