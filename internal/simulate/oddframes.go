package simulate

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// frameOddity is a rare or malformed way in which a target of HTTP/2 responds.
type frameOddity struct {
	oddity
	act func(o *oddStream)

	unprocessed bool // the target signals that it has not processed the request, which may be sent again (RFC 9113 section 8.7)
	always      bool // it also applies to a response without a body
	connection  bool // it is, or may be taken for, an error of the connection
	empty       bool // the response has no body
	status      int  // of the response, if not 0
	owed        bool // the response is well-formed: the client gets it
}

// oddStream is a stream on which a target responds oddly.
type oddStream struct {
	t     *target
	s     *frameStream
	plan  *ExchangePlan
	r     *ResponsePlan
	sight *Sight
	odd   *frameOddity // nil: none
}

// header sends the header section of the response, with more fields.
func (o *oddStream) header(end bool, more ...string) {
	list := o.fields(false)
	for i := 0; i < len(more); i += 2 {
		list = append(list, hpack.HeaderField{Name: more[i], Value: more[i+1]})
	}
	o.s.sendHeader(list, end)
}

// body sends the content.
func (o *oddStream) body() { _, _ = o.s.Write(o.content()) }

// half sends half of the content.
func (o *oddStream) half() { _, _ = o.s.Write(o.content()[:o.r.Body.Length/2]) }

// content is the response's.
func (o *oddStream) content() []byte {
	return o.plan.responseBody(o.sight.Attempt).Bytes(0, o.r.Body.Length)
}

// length is the Content-Length of n bytes more than there are.
func (o *oddStream) length(n int64) []string {
	return []string{"content-length", strconv.FormatInt(o.r.Body.Length+n, 10)}
}

// end ends the stream.
func (o *oddStream) end() { _ = o.s.end(nil) }

// raw writes any frames.
func (o *oddStream) raw(write func(f *http2.Framer, id uint32)) {
	f := o.s.conn
	f.mu.Lock()
	defer f.mu.Unlock()
	write(f.framer, o.s.id)
}

// replaced sends a header section in which the fields of a name are replaced by others.
func replaced(name string, by ...string) func(*oddStream) {
	return func(o *oddStream) {
		var list []hpack.HeaderField
		for _, f := range o.fields(false) {
			if f.Name != name {
				list = append(list, f)
			}
		}
		var first []hpack.HeaderField
		for i := 0; i < len(by); i += 2 {
			first = append(first, hpack.HeaderField{Name: by[i], Value: by[i+1]})
		}
		o.s.sendHeader(append(first, list...), false)
		o.body()
		o.end()
	}
}

// extra sends more header fields.
func extra(more ...string) func(*oddStream) {
	return func(o *oddStream) { o.header(false, more...); o.body(); o.end() }
}

// broken sends half a response, and then what write writes.
func brokenBy(write func(f *http2.Framer, id uint32)) func(*oddStream) {
	return func(o *oddStream) { o.header(false); o.half(); o.raw(write) }
}

// reset sends half a response, and RST_STREAM.
func resetBy(code http2.ErrCode) func(*oddStream) {
	return func(o *oddStream) { o.header(false); o.half(); o.s.resetWith(code) }
}

// leaveOut sends a GOAWAY that does not include the stream, or RST_STREAM if a later stream is processed.
func leaveOut(code http2.ErrCode) func(*oddStream) {
	return func(o *oddStream) {
		f := o.s.conn
		f.mu.Lock()
		o.sight.Unprocessed = true
		if o.s.id != f.newest || f.refused {
			f.mu.Unlock()
			o.s.resetWith(http2.ErrCodeRefusedStream)
			return
		}
		f.goAwayBehind(max(2, o.s.id)-2, code)
		f.mu.Unlock()
	}
}

// frameOddities lists the odd responses over HTTP/2. New ones are added at the end.
var frameOddities = []frameOddity{
	{oddity: oddity{name: "GOAWAY that leaves the request out"}, act: leaveOut(http2.ErrCodeNo), unprocessed: true, always: true},
	{oddity: oddity{name: "GOAWAY with an error"}, act: leaveOut(http2.ErrCodeEnhanceYourCalm), unprocessed: true, always: true, connection: true},
	{oddity: oddity{name: "REFUSED_STREAM"}, unprocessed: true, always: true, act: func(o *oddStream) {
		o.sight.Unprocessed = true
		o.s.resetWith(http2.ErrCodeRefusedStream)
	}},
	{oddity: oddity{name: "CANCEL in place of a response"}, always: true, act: func(o *oddStream) { o.s.resetWith(http2.ErrCodeCancel) }},
	{oddity: oddity{name: "NO_ERROR in place of a response"}, always: true, act: func(o *oddStream) { o.s.resetWith(http2.ErrCodeNo) }},
	{oddity: oddity{name: "REFUSED_STREAM behind a header"}, act: resetBy(http2.ErrCodeRefusedStream)},
	{oddity: oddity{name: "CANCEL in a body"}, act: resetBy(http2.ErrCodeCancel)},
	{oddity: oddity{name: "INTERNAL_ERROR in a body"}, act: resetBy(http2.ErrCodeInternal)},
	{oddity: oddity{name: "NO_ERROR in a body"}, act: resetBy(http2.ErrCodeNo)},
	{oddity: oddity{name: "GOAWAY in a body", fate: tolerated}, owed: true, act: func(o *oddStream) {
		o.header(false)
		o.half()
		o.raw(func(*http2.Framer, uint32) {
			if f := o.s.conn; !f.refused {
				f.goAwayBehind(f.newest, http2.ErrCodeNo)
			}
		})
		_, _ = o.s.Write(o.content()[o.r.Body.Length/2:])
		o.end()
	}},
	{oddity: oddity{name: "trailers only", fate: tolerated}, empty: true, owed: true, act: func(o *oddStream) { o.header(true) }},
	{oddity: oddity{name: "interim responses of HTTP/2", fate: tolerated}, act: func(o *oddStream) {
		for _, status := range []string{"100", "102", "199"} {
			o.s.sendHeader([]hpack.HeaderField{{Name: ":status", Value: status}, {Name: "x-sent", Value: "a"}}, false)
		}
		extra()(o)
	}},
	{oddity: oddity{name: "an interim response that ends"}, act: func(o *oddStream) {
		o.s.sendHeader([]hpack.HeaderField{{Name: ":status", Value: "103"}}, true)
	}},
	{oddity: oddity{name: "DATA before the header"}, act: func(o *oddStream) {
		_, _ = o.s.Write([]byte("x")) // the body may be empty
		extra()(o)
	}},
	{oddity: oddity{name: "DATA longer than its length"}, act: func(o *oddStream) {
		o.header(false, o.length(0)...)
		o.body()
		_, _ = o.s.Write([]byte("x"))
		o.end()
	}},
	{oddity: oddity{name: "DATA shorter than its length"}, act: func(o *oddStream) { extra(o.length(1)...)(o) }},
	{oddity: oddity{name: "lengths of HTTP/2 that differ"}, act: func(o *oddStream) {
		extra(append(o.length(1), o.length(0)...)...)(o)
	}},
	{oddity: oddity{name: "a length of HTTP/2 that is no number"}, act: extra("content-length", "3x")},
	{oddity: oddity{name: "no :status"}, act: replaced(":status")},
	{oddity: oddity{name: "two :status"}, act: replaced(":status", ":status", "200", ":status", "404")},
	{oddity: oddity{name: "a :status that is no number"}, act: replaced(":status", ":status", "2xx")},
	{oddity: oddity{name: ":status behind a field"}, act: replaced(":status", "x-sent", "a", ":status", "200")},
	{oddity: oddity{name: "a pseudo field of requests"}, act: replaced(":status", ":status", "200", ":path", "/")},
	{oddity: oddity{name: "an upper-case name"}, act: extra("X-Sent", "a")},
	{oddity: oddity{name: "NUL in a value"}, act: extra("x-sent", "a\x00b")},
	{oddity: oddity{name: "CR LF in a value"}, act: extra("x-sent", "a\r\nx-other: b")},
	{oddity: oddity{name: "connection-specific fields", fate: tolerated}, act: extra("connection", "x-other", "x-other", "a", "keep-alive", "a", "transfer-encoding", "chunked", "upgrade", "h2c")},
	{oddity: oddity{name: "a header list that is too large"}, connection: true, act: func(o *oddStream) {
		extra("x-large", strings.Repeat("a", 300<<10))(o)
	}},
	{oddity: oddity{name: "pseudo fields in trailers"}, act: func(o *oddStream) {
		o.header(false)
		o.body()
		o.s.sendHeader([]hpack.HeaderField{{Name: ":status", Value: "200"}}, true)
	}},
	{oddity: oddity{name: "trailers that don't end"}, act: func(o *oddStream) {
		o.header(false)
		o.body()
		o.s.sendHeader([]hpack.HeaderField{{Name: "x-sent", Value: "a"}}, false)
	}},
	{oddity: oddity{name: "DATA behind END_STREAM", fate: tolerated}, connection: true, act: func(o *oddStream) {
		extra()(o)
		o.raw(func(f *http2.Framer, id uint32) { _ = f.WriteRawFrame(http2.FrameData, 0, id, []byte("x")) })
	}},
	{oddity: oddity{name: "204 with DATA", fate: tolerated}, status: 204, always: true, act: func(o *oddStream) { extra()(o) }},
	{oddity: oddity{name: "304 with DATA", fate: tolerated}, status: 304, always: true, act: func(o *oddStream) { extra()(o) }},
	{oddity: oddity{name: "a frame that breaks off"}, connection: true, act: func(o *oddStream) {
		o.header(false)
		o.half()
		o.raw(func(_ *http2.Framer, id uint32) {
			_, _ = o.s.conn.conn.Write([]byte{0, 1, 0, 0, 0, 0, 0, 0, byte(id), 'x'})
			_ = o.s.conn.conn.CloseWrite()
		})
	}},
	{oddity: oddity{name: "a frame that is too large"}, connection: true, act: brokenBy(func(f *http2.Framer, id uint32) {
		_ = f.WriteRawFrame(http2.FrameData, 0, id, bytes.Repeat([]byte("x"), 5<<20))
	})},
	{oddity: oddity{name: "PUSH_PROMISE"}, connection: true, act: brokenBy(func(f *http2.Framer, id uint32) {
		_ = f.WriteRawFrame(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, id, []byte{0, 0, 0, 2, 0x82})
	})},
	{oddity: oddity{name: "a header block that is none"}, connection: true, act: func(o *oddStream) {
		o.raw(func(f *http2.Framer, id uint32) {
			_ = f.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, id, []byte{0xff, 0xff, 0xff, 0xff, 0x0f})
		})
	}},
	{oddity: oddity{name: "a frame inside a header block"}, connection: true, act: func(o *oddStream) {
		o.raw(func(f *http2.Framer, id uint32) {
			_ = f.WriteRawFrame(http2.FrameHeaders, 0, id, []byte{0x88})
			_ = f.WritePing(false, [8]byte{2})
		})
	}},
	{oddity: oddity{name: "a window that opens by nothing"}, act: brokenBy(func(f *http2.Framer, id uint32) {
		_ = f.WriteRawFrame(http2.FrameWindowUpdate, 0, id, make([]byte, 4))
	}), connection: true},
	{oddity: oddity{name: "SETTINGS on a stream"}, connection: true, act: brokenBy(func(f *http2.Framer, id uint32) {
		_ = f.WriteRawFrame(http2.FrameSettings, 0, id, nil)
	})},
	{oddity: oddity{name: "DATA on stream 0"}, connection: true, act: brokenBy(func(f *http2.Framer, _ uint32) {
		_ = f.WriteRawFrame(http2.FrameData, 0, 0, []byte("x"))
	})},
	{oddity: oddity{name: "101 of HTTP/2"}, always: true, act: func(o *oddStream) {
		o.s.sendHeader([]hpack.HeaderField{{Name: ":status", Value: "101"}, {Name: "x-sent", Value: "a"}}, false)
		extra()(o)
	}},
}
