package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// after is the same gateway over culvert.
func after(c config) (*gateway, error) {
	appTarget, err := upstream.ParseTarget(c.app.String())
	if err != nil {
		return nil, err
	}
	pagesTarget, err := upstream.ParseTarget(c.pages.String())
	if err != nil {
		return nil, err
	}
	options := upstream.Options{Name: "app", TLSConfig: &tls.Config{RootCAs: c.roots}, DialTimeout: 2 * time.Second, HeaderTimeout: c.wait}
	appGroup, err := upstream.New(options, appTarget)
	if err != nil {
		return nil, err
	}
	options.Name = "pages"
	pagesGroup, err := upstream.New(options, pagesTarget)
	if err != nil {
		appGroup.Close()
		return nil, err
	}
	closeGroups := func() { appGroup.Close(); pagesGroup.Close() }
	logError := func(r *http.Request, err *culvert.Error) { c.log.Printf("%s: %v", r.URL.Path, err) }
	app, err := proxy.New(proxy.Options{
		Upstream: appGroup,
		Rewrite: func(o *proxy.Outbound) {
			o.StripPrefix("/app")
			o.SetXForwarded()
			o.Out.Header.Set("X-Tenant", c.tenant)
		},
		OnAttempt: func(out *http.Request, _ string) func(culvert.Attempt) { // was a http.RoundTripper around the Transport
			out.Header.Set("X-Signature", sign(c.secret, out))
			return nil
		},
		ModifyResponse: func(r *proxy.Response) {
			r.Header.Del("Server")
			if r.Header.Get("X-Internal") != "" {
				r.Fail(&culvert.Error{Kind: culvert.Forbidden, Err: errInternal})
			}
		},
		OnError: logError,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err *culvert.Error) {
			writeError(w, err.Status())
		},
	})
	if err != nil {
		closeGroups()
		return nil, err
	}
	pages, err := proxy.New(proxy.Options{Upstream: pagesGroup, OnError: logError})
	if err != nil {
		closeGroups()
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/app/", filters.NewChain(withBanner()).Then(app))
	mux.Handle("/", pages)
	return &gateway{Handler: filters.NewChain().Then(mux), close: closeGroups}, nil
}

// withBanner puts the banner into HTML pages.
func withBanner() culvert.Filter {
	return filters.OnResponse(filters.ResponseHooks{
		Body: func(_ *http.Request, _ int, h http.Header, w io.Writer) io.WriteCloser {
			if !strings.HasPrefix(h.Get("Content-Type"), "text/html") {
				return nil
			}
			h.Del("Content-Length")
			return &bannerWriter{to: w}
		},
	})
}

// bannerWriter holds a page until it is complete, as the former ModifyResponse did.
type bannerWriter struct {
	to   io.Writer
	page bytes.Buffer
}

const maxPage = 4 << 20

func (b *bannerWriter) Write(p []byte) (int, error) {
	if b.page.Len()+len(p) > maxPage {
		return 0, errors.New("the page is too long for the banner")
	}
	return b.page.Write(p)
}

func (b *bannerWriter) Close() error {
	_, err := b.to.Write(bytes.Replace(b.page.Bytes(), []byte("<body>"), []byte("<body>"+banner), 1))
	return err
}
