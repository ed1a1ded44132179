package filters

import (
	"io"
	"net/http"

	"github.com/culvert-go/culvert/internal/response"
)

// ErrorPages returns a filter that serves pages of its own in place of answers
// whose status pages has a handler for; nil leaves the answer as it is. The page's
// fields replace those that describe the content it stands for, its status is not
// used: the answer's stays. Successes and a 304 are left as they are. The page's handler
// gets the request as a GET, so that a file server will do.
//
// It sees the final head alone: an answer that a handler has begun is not undone.
// ErrorPages panics if pages is nil.
func ErrorPages(pages func(status int) http.Handler) Filter {
	if pages == nil {
		panic("filters: ErrorPages: the function is nil")
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p := &errorPage{pages: pages}
			response.Serve(next, w, r, &response.Hooks{Head: p.head, Body: p.body})
		})
	}
}

// errorPage is one answer.
type errorPage struct {
	pages func(int) http.Handler
	page  *pageWriter // nil: the answer stays
}

// contentFields describe a content that is not sent.
var contentFields = []string{"Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Range",
	"Content-Disposition", "Etag", "Last-Modified", "Accept-Ranges", "Trailer"}

func (p *errorPage) head(answered *http.Request, status int, h http.Header) {
	if status < 300 || status == http.StatusNotModified {
		return
	}
	handler := p.pages(status)
	if handler == nil {
		return
	}
	p.page = &pageWriter{header: http.Header{}}
	r := answered.Clone(answered.Context())
	r.Method, r.Body, r.ContentLength = http.MethodGet, http.NoBody, 0
	for _, name := range []string{"Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"} {
		delete(r.Header, name) // they were about another content
	}
	handler.ServeHTTP(p.page, r)
	for _, name := range contentFields {
		delete(h, name)
	}
	deleteDigests(h)
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

// pageWriter takes a page.
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

// pageBody drops what the handler writes and sends the page at the end.
type pageBody struct {
	w    io.Writer
	page []byte
}

func (b *pageBody) Write(p []byte) (int, error) { return len(p), nil }

func (b *pageBody) Close() error {
	_, err := b.w.Write(b.page)
	return err
}
