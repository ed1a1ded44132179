package wsupgrade

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"net/textproto"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
)

const (
	deflateName = "permessage-deflate"
	// window is how far back deflated data may refer.
	window = 32 << 10
)

// deflate is the state of permessage-deflate in one direction.
type deflate struct {
	takeover    bool   // context takeover: messages refer to those before them
	smallWindow bool   // the receiver's window is smaller than the one that is deflated with
	history     []byte // the last 32 KiB of the messages so far
}

// negotiatedDeflate returns what the ends have negotiated for the two directions, nil if they have
// not negotiated it.
func negotiatedDeflate(h http.Header) (up, down *deflate) {
	for _, line := range h[extensionsField] {
		for item := range strings.SplitSeq(line, ",") {
			if extensionName(item) == deflateName {
				params := extensionParams(item)
				return newDeflate(params, "client"), newDeflate(params, "server")
			}
		}
	}
	return nil, nil
}

func newDeflate(params map[string]string, sender string) *deflate {
	_, fresh := params[sender+"_no_context_takeover"]
	bits, bounded := params[sender+"_max_window_bits"]
	return &deflate{takeover: !fresh, smallWindow: bounded && bits != "" && bits != "15"}
}

// extensionName returns the name in one item of Sec-WebSocket-Extensions.
func extensionName(item string) string {
	name, _, _ := strings.Cut(item, ";")
	return textproto.TrimString(name)
}

func extensionParams(item string) map[string]string {
	params := map[string]string{}
	_, list, _ := strings.Cut(item, ";")
	for param := range strings.SplitSeq(list, ";") {
		name, value, _ := strings.Cut(param, "=")
		params[textproto.TrimString(name)] = strings.Trim(textproto.TrimString(value), `"`)
	}
	return params
}

// tail is what a sender removes from the end of each message (RFC 7692 section 7.2.1), and the
// empty last block that ends the stream for a reader.
const tail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// inflate returns the content of a message, of max bytes at most.
func (d *deflate) inflate(p []byte, max uint64) ([]byte, error) {
	r := inflaters.Get().(io.Reader)
	defer inflaters.Put(r)
	src := io.MultiReader(bytes.NewReader(p), strings.NewReader(tail))
	if err := r.(flate.Resetter).Reset(src, d.history); err != nil {
		return nil, errDeflate
	}
	content, err := io.ReadAll(io.LimitReader(r, int64(min(max, math.MaxInt64-1))+1))
	switch {
	case err != nil:
		return nil, errDeflate
	case uint64(len(content)) > max:
		return nil, errTooBig
	}
	d.remember(content)
	return content, nil
}

// remember keeps the content that the next message may refer to.
func (d *deflate) remember(content []byte) {
	if !d.takeover {
		return
	}
	if len(content) >= window {
		d.history = append(d.history[:0], content[len(content)-window:]...)
		return
	}
	if over := len(d.history) + len(content) - window; over > 0 {
		d.history = append(d.history[:0], d.history[over:]...)
	}
	d.history = append(d.history, content...)
}

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level does not exist
	}
	return w
}}

// deflate deflates a message without reference to earlier ones, as a sender always may. ok is false
// if the message is to be sent uncompressed, since the receiver's window may be too small, or it
// would get no smaller.
func (d *deflate) deflate(p []byte) (deflated []byte, ok bool, err error) {
	if d.smallWindow {
		return nil, false, nil
	}
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	if _, err := w.Write(p); err != nil {
		return nil, false, err
	}
	if err := w.Flush(); err != nil {
		return nil, false, err
	}
	deflated = bytes.TrimSuffix(b.Bytes(), []byte(tail[:4]))
	return deflated, len(deflated) < len(p), nil
}
