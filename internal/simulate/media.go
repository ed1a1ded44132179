package simulate

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// The kinds of content that targets send.
const (
	MediaOpaque   = iota // bytes that no filter interprets
	MediaText            // text that Compress compresses
	MediaLines           // records of a line each
	MediaEvents          // records of text/event-stream
	MediaKubeJSON        // of Kubernetes
	MediaKubeProto
	MediaKubeStream // a watch in protobuf
)

var mediaTypes = [...]string{"application/x-simulated", "text/plain", "application/x-ndjson", "text/event-stream", kubeJSON, kubeProto, kubeProto + ";stream=watch"}

// body is an encoded content.
type body interface {
	Bytes(off, end int64) []byte
	Size() int64
}

// Size implements body.
func (c Content) Size() int64 { return c.Length }

// rawBody is a body in memory.
type rawBody []byte

// Bytes implements body.
func (b rawBody) Bytes(off, end int64) []byte { return bytes.Clone(b[off:end]) }

// Size implements body.
func (b rawBody) Size() int64 { return int64(len(b)) }

// longestInMemory bounds contents that are not opaque.
const longestInMemory = 20_000

// newRepresentation chooses the content of a response.
func (r *ResponsePlan) newRepresentation(c *Choices) {
	r.Media = Pick(c, MediaOpaque, MediaText, MediaText, MediaLines, MediaEvents)
	r.Coding = Pick(c, "", "", "gzip", "zstd", "br")
	r.Cache = Pick(c, "", "max-age=60", "no-store", "private", "public, s-maxage=9", "no-cache")
	r.Body.Length = min(r.Body.Length, longestInMemory)
	r.Half = (r.Coding == "gzip" || r.Coding == "zstd") && c.Bool(4)
}

// plain returns the content before it is encoded.
func (r *ResponsePlan) plain(e *ExchangePlan, attempt int) body {
	c := Content{e.stream(attempt), r.Body.Length}
	if r.Kube != nil {
		return rawBody(r.Kube.content(c.Stream).bytes()[:c.Length])
	}
	switch r.Media {
	case MediaLines:
		return rawBody(records(c, "line %d of %d %s\n"))
	case MediaEvents:
		return rawBody(records(c, "data: %d of %d %s\n\n"))
	}
	return c
}

// records returns records of many lengths, of which some are empty and the last one may have no end.
func records(c Content, format string) []byte {
	var b bytes.Buffer
	for i := 0; int64(b.Len()) < c.Length; i++ {
		pad := int(c.Stream+uint32(i)*7) % 160
		fmt.Fprintf(&b, format, i, c.Stream, strings.Repeat("r", pad))
		if pad%5 == 0 {
			b.WriteString("\n") // an empty one
		}
	}
	return b.Bytes()[:c.Length]
}

// wire returns what the target sends.
func (r *ResponsePlan) wire(e *ExchangePlan, attempt int) body {
	wire := encoded(r.Coding, r.plain(e, attempt))
	if r.Half {
		return rawBody(wire.Bytes(0, wire.Size()/2))
	}
	return wire
}

// requestWire returns what the client sends.
func (e *ExchangePlan) requestWire() body { return encoded(e.Coding, e.requestBody()) }

// decoded decodes what was received as far as it goes, and reports whether it is whole.
func decoded(coding string, wire []byte) (plain []byte, whole bool) {
	var r io.Reader
	var err error
	switch coding {
	case "gzip":
		r, err = gzip.NewReader(bytes.NewReader(wire))
	case "zstd":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(bytes.NewReader(wire), zstd.WithDecoderConcurrency(1)); err == nil {
			defer z.Close()
		}
		r = z
	default:
		return wire, true
	}
	if err != nil {
		return nil, false
	}
	plain, err = io.ReadAll(r)
	return plain, err == nil
}

// message is the response as the target sends it.
func (r *ResponsePlan) message(e *ExchangePlan, attempt int) *message {
	m := &message{status: r.Status, media: mediaTypes[r.Media], coding: r.Coding, length: -1, header: map[string]string{}}
	m.half = r.Half
	wire := r.wire(e, attempt)
	m.wire = wire.Size()
	if r.Framing == ByLength && r.Status != 204 {
		m.length = wire.Size()
	}
	m.header["Cache-Control"], m.header["Expires"] = r.Cache, ""
	plain := r.plain(e, attempt)
	m.body = func() []byte { return plain.Bytes(0, plain.Size()) }
	_, m.changed = wire.(rawBody)
	if r.Kube != nil {
		m.kube = r.Kube.content(e.stream(attempt)).until(r.Body.Length)
	}
	return m
}

// requestFields are the header fields that filters look at.
func (e *ExchangePlan) requestFields() (fields [][2]string) {
	if e.Accept != "" {
		fields = append(fields, [2]string{"Accept-Encoding", e.Accept})
	}
	if e.Wants != "" {
		fields = append(fields, [2]string{"Accept", e.Wants})
	}
	if e.Coding != "" && e.hasBody() {
		fields = append(fields, [2]string{"Content-Encoding", e.Coding})
	}
	if e.Forwarded {
		fields = append(fields, [2]string{"X-Forwarded-For", forwardedFor})
	}
	if e.Under {
		fields = append(fields, [2]string{"X_Under", "u"})
	}
	return fields
}

// newRequestFields chooses them.
func (e *ExchangePlan) newRequestFields(c *Choices) {
	e.Accept = Pick(c, "", "gzip", "zstd, gzip;q=0.5", "gzip;q=0, *", "br", "identity, gzip;q=0.5", "gzip")
	e.Under = c.Bool(8)
	e.Forwarded = c.Bool(2)
	if e.Body.Length > 0 && e.Body.Length <= longestInMemory && c.Bool(4) {
		e.Coding = Pick(c, "gzip", "zstd", "br")
		e.Body.CutAt %= e.requestWire().Size()
	}
}

// fields returns the header fields that describe the response's content.
func (r *ResponsePlan) fields() (fields [][2]string) {
	fields = append(fields, [2]string{"Content-Type", mediaTypes[r.Media]})
	if r.Coding != "" {
		fields = append(fields, [2]string{"Content-Encoding", r.Coding})
	}
	if r.Cache != "" {
		fields = append(fields, [2]string{"Cache-Control", r.Cache})
	}
	return fields
}

// readRequest reads a request's body into check, decoded if it has a Content-Encoding.
func (e *ExchangePlan) readRequest(check *Checker, req *http.Request) (int64, error) {
	coding := req.Header.Get("Content-Encoding")
	if coding == "" || coding == "br" {
		return io.Copy(check, req.Body)
	}
	wire, err := io.ReadAll(req.Body)
	plain, whole := decoded(coding, wire)
	_, _ = check.Write(plain)
	if err == nil && !whole {
		check.bad = fmt.Errorf("%d bytes of %s, which are not whole", len(wire), coding)
	}
	return int64(len(wire)), err
}

// collector keeps a response's content.
type collector struct{ o *Outcome }

// Write implements io.Writer.
func (c collector) Write(p []byte) (int, error) {
	c.o.Raw = append(c.o.Raw, p...)
	return len(p), nil
}

// addContents chooses contents for the filters of the chain: without it few filters would meet contents that they change.
func (p *Plan) addContents(c *Choices) {
	for _, name := range []string{"Compress", "Decompress", "Records"} {
		if !p.has(name) {
			continue
		}
		for i := range p.Clients {
			if kind := p.Clients[i].Kind; kind.upgrades() || kind == Malformed {
				continue
			}
			for k := range p.Clients[i].Requests {
				p.Clients[i].Requests[k].fit(c, name)
			}
		}
	}
}

// fit chooses contents for a filter.
func (e *ExchangePlan) fit(c *Choices, filter string) {
	if filter == "Compress" && c.Bool(3) {
		e.Accept = Pick(c, "gzip", "zstd, gzip;q=0.5")
	}
	for i := range e.Responses {
		r := &e.Responses[i]
		if r.Odd > 0 || r.OddFrames > 0 || !c.Bool(3) {
			continue
		}
		r.Status, r.Body.Length, r.Half = 200, int64(1200+c.Int(4000)), false
		switch filter {
		case "Compress":
			r.Media, r.Coding = MediaText, ""
		case "Decompress":
			r.Coding, r.Half = Pick(c, "gzip", "zstd"), c.Bool(4)
		case "Records":
			r.Media, r.Coding = Pick(c, MediaLines, MediaEvents), ""
		}
	}
}
