package culvert_test

import (
	"bytes"
	"crypto/subtle"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/filters/filtertest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// RequireKey responds with 401 to requests without the API key. All others reach the next handler,
// without the key.
func RequireKey(key string) culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Api-Key")), []byte(key)) == 0 {
				http.Error(w, "a valid X-Api-Key is required", http.StatusUnauthorized)
				return
			}
			r = r.Clone(r.Context())
			r.Header.Del("X-Api-Key")
			next.ServeHTTP(w, r)
		})
	}
}

// ServerTiming adds the time to the header of each response to that header.
func ServerTiming() culvert.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			start := time.Now()
			timing := filters.OnResponse(filters.ResponseHooks{
				Header: func(_ *http.Request, status int, h http.Header) {
					ms := float64(time.Since(start).Microseconds()) / 1000
					h.Add("Server-Timing", "gateway;dur="+strconv.FormatFloat(ms, 'f', -1, 64))
				},
			})
			timing(next).ServeHTTP(w, r)
		})
	}
}

// Banner puts text at the beginning of HTML pages.
func Banner(text string) culvert.Filter {
	return filters.OnResponse(filters.ResponseHooks{
		Body: func(_ *http.Request, status int, h http.Header, w io.Writer) io.WriteCloser {
			html := strings.HasPrefix(h.Get("Content-Type"), "text/html")
			if status != http.StatusOK || !html || h.Get("Content-Encoding") != "" {
				return nil // as it is
			}
			h.Del("Content-Length")
			return &bannerWriter{page: w, text: text}
		},
	})
}

type bannerWriter struct {
	page io.Writer
	text string
	held []byte // until <body> is there, or too much else
}

func (b *bannerWriter) Write(p []byte) (int, error) {
	if b.text == "" { // it is written
		return b.page.Write(p)
	}
	b.held = append(b.held, p...)
	if i := bytes.Index(b.held, []byte("<body>")); i >= 0 {
		b.held = slices.Insert(b.held, i+len("<body>"), []byte(b.text)...)
	} else if len(b.held) < 64<<10 {
		return len(p), nil
	}
	return len(p), b.Close()
}

func (b *bannerWriter) Close() error {
	_, err := b.page.Write(b.held)
	b.text, b.held = "", nil
	return err
}

func TestBanner(t *testing.T) {
	filtertest.Test(t, Banner("<p>Maintenance on Sunday</p>"))
	pieces := []string{"<html><bo", "dy>page", "</body>"}
	page := Banner("<p>Sunday</p>")(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(strings.Join(pieces, ""))))
		for _, piece := range pieces {
			_, _ = io.WriteString(w, piece)
		}
	}))
	server := httptest.NewServer(page)
	defer server.Close()
	if _, body := wiretest.Get(t, server.URL); string(body) != "<html><body><p>Sunday</p>page</body>" {
		t.Errorf("the page is %q", body)
	}
}

func TestServerTiming(t *testing.T) {
	filtertest.Test(t, ServerTiming())
}

// A filter is any func(http.Handler) http.Handler. One that looks at responses is made of OnResponse,
// which preserves flush, hijack, trailers, interim responses and deadlines.
func Example_filter() {
	chain := filters.NewChain(ServerTiming(), RequireKey("secret"))
	http.Handle("/", chain.ThenFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}))
}
