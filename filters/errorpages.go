package filters

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/internal/response"
)

// ErrorPages returns a filter that replaces the content of error responses by pages.
// It calls pages with the status of each response with a status of 300 and more, but 304. If
// pages returns nil, the response is not changed. Otherwise the content is that of the
// handler that it returns, and so are the header fields that describe it. The status
// of the response is kept; that of the handler is ignored. The handler is called with the
// request as a GET without a body, so that a file server can be used.
//
// The content is replaced when the final header is written. A response that has begun
// is not changed. Package proxy does not wait for the content that is replaced. ErrorPages
// panics if pages is nil.
func ErrorPages(pages func(status int) http.Handler) culvert.Filter {
	if pages == nil {
		panic("filters: ErrorPages: the function is nil")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p := &errorPage{pages: pages}
			response.Serve(next, w, r, &response.Hooks{Header: p.header, Body: p.body, Trailer: header.DeleteTrailers})
		})
	}
}

// errorPage is the state of one response.
type errorPage struct {
	pages func(int) http.Handler
	page  *pageWriter // nil: the response is not replaced
}

// contentFields are the header fields that describe the content.
var contentFields = []string{"Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Range",
	"Content-Disposition", "Etag", "Last-Modified", "Accept-Ranges", "Trailer"}

// header makes the page, and replaces the header fields that describe the content.
func (p *errorPage) header(original *http.Request, status int, h http.Header) {
	if status < 300 || status == http.StatusNotModified {
		return
	}
	handler := p.pages(status)
	if handler == nil {
		return
	}
	p.page = &pageWriter{header: http.Header{}}
	r := original.Clone(original.Context())
	r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
	header.RemoveConditions(r.Header) // they refer to the content that is replaced
	handler.ServeHTTP(p.page, r)
	for _, name := range contentFields {
		delete(h, name)
	}
	header.DeleteDigests(h)
	for name, values := range p.page.header {
		h[name] = values
	}
}

func (p *errorPage) body(_ *http.Request, _ int, _ http.Header, w io.Writer) io.WriteCloser {
	if p.page == nil {
		return nil
	}
	return &pageBody{w, p.page.content}
}

// pageWriter is a ResponseWriter that holds a page.
type pageWriter struct {
	header  http.Header
	content []byte
}

func (w *pageWriter) Header() http.Header { return w.header }

func (w *pageWriter) WriteHeader(int) {}

func (w *pageWriter) Write(p []byte) (int, error) {
	w.content = append(w.content, p...)
	return len(p), nil
}

// pageBody is a transform that discards what the handler writes, and sends the page at the end.
type pageBody struct {
	w    io.Writer
	page []byte
}

func (b *pageBody) Write(p []byte) (int, error) { return len(p), nil }

// Discards implements response.Discards.
func (b *pageBody) Discards() bool { return true }

func (b *pageBody) Close() error {
	_, err := b.w.Write(b.page)
	return err
}
