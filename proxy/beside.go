package proxy

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/culvert-go/culvert/internal/replay"
)

// bodyBeside returns the body of a response beside which the request is still sent, perhaps.
//
// Over HTTP/2 net/http's transport looks at nothing but the request's body as long as it reads that, or waits for a window to send
// it, as of a body that is there as a whole: the end of the attempt's context does not end the response's body then. Nor does it, for
// any request, until the reset is written to the target, over a connection that the target may not read. So the body is closed for it.
func (c *call) bodyBeside(ctx context.Context, resp *http.Response) io.ReadCloser {
	if !c.source.Exists() && resp.ProtoMajor < 2 || resp.Body == http.NoBody {
		return resp.Body
	}
	body := &besideUpload{ReadCloser: resp.Body, source: c.source, upload: &c.body, ctx: ctx}
	if resp.ProtoMajor >= 2 {
		body.ended = make(chan struct{})
		body.unwatch = context.AfterFunc(ctx, body.end)
	}
	return body
}

// besideUpload is the body of a response whose request may still be read, or that comes over HTTP/2.
type besideUpload struct {
	io.ReadCloser
	source  *replay.Body
	upload  *replay.Attempt
	ctx     context.Context // the attempt's
	unwatch func() bool     // nil: the transport watches the context itself
	ended   chan struct{}   // closed when end has returned
	once    sync.Once
}

// end closes the body when the attempt's context has ended. A panic of a transport's own body is the handler's.
func (b *besideUpload) end() {
	defer close(b.ended)
	var err error
	defer b.source.Catch(&err)
	err = b.ReadCloser.Close()
}

// stopWatching ends the watch of the context. Behind it end does not run.
func (b *besideUpload) stopWatching() {
	if b.unwatch != nil && !b.unwatch() {
		<-b.ended
	}
}

// Read implements io.Reader. Where the attempt's context has ended its error is the body's, as it is net/http's.
func (b *besideUpload) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if ended := b.ctx.Err(); err != nil && err != io.EOF && ended != nil {
		err = ended
	}
	return n, err
}

// Close implements io.Closer.
func (b *besideUpload) Close() error {
	b.once.Do(b.stopWatching)
	if !b.source.Client().Ended() {
		b.upload.Leave()
	}
	return b.ReadCloser.Close()
}
