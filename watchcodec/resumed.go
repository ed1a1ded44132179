package watchcodec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/culvert-go/culvert/internal/nested"
	"github.com/culvert-go/culvert/internal/response"
	"github.com/culvert-go/culvert/internal/result"
)

// listingTimeout bounds how long a watch stands still while what its client has seen is listed.
const listingTimeout = 30 * time.Second

// listingPage is how many objects are requested at once, as client-go does.
const listingPage = "500"

// newVisible returns what a watch needs that r requests of next.
func (a *answer) newVisible(next http.Handler, r *http.Request) *Visible {
	query := r.URL.Query()
	version := query.Get("resourceVersion")
	initial, given := query["sendInitialEvents"]
	// From "" or "0" a server sends all objects first, or, if told not to, what happens from now on
	// to a client that says that it has nothing.
	if version == "" || version == "0" || given && truth(initial) {
		return NewVisible(a.rewrite)
	}
	return NewResumedVisible(a.rewrite, version, func(version string, take func(*Object) error) error {
		return a.listAt(next, r, version, take)
	})
}

// CollectionPath returns the path of the collection that the request is about, without the
// prefix /watch/ of old and without the name of an object.
func (r *Request) CollectionPath() string {
	prefix := "/api/" + r.APIVersion
	if r.APIGroup != "" {
		prefix = "/apis/" + r.APIGroup + "/" + r.APIVersion
	}
	if r.Namespace != "" && r.Resource != "namespaces" {
		prefix += "/namespaces/" + r.Namespace
	}
	return prefix + "/" + r.Resource
}

// listAt lists what the watch that r requests is about, as it was at a version, with the client's
// credentials and in the form of the watch.
func (a *answer) listAt(next http.Handler, r *http.Request, version string, take func(*Object) error) error {
	ctx, cancel := context.WithTimeout(nested.With(r.Context()), listingTimeout)
	defer cancel()
	query := url.Values{"limit": {listingPage}, "resourceVersion": {version}, "resourceVersionMatch": {"Exact"}}
	watched := r.URL.Query()
	for _, name := range []string{"labelSelector", "fieldSelector", "includeObject"} {
		if values := watched[name]; len(values) > 0 {
			query[name] = values
		}
	}
	if a.req.Name != "" && !query.Has("fieldSelector") { // of the old path /watch/…/NAME
		query.Set("fieldSelector", "metadata.name="+a.req.Name)
	}
	for {
		// The record of r is that of the watch, which another goroutine may be writing.
		own, _ := result.WithNew(ctx)
		page := r.Clone(own)
		page.Method, page.Body, page.ContentLength, page.RequestURI = http.MethodGet, http.NoBody, 0, ""
		page.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: a.req.CollectionPath(), RawQuery: query.Encode()}
		page.Header.Set("Accept", strings.ReplaceAll(page.Header.Get("Accept"), "as=PartialObjectMetadata;", "as=PartialObjectMetadataList;"))
		l := &listing{header: http.Header{}, cancel: cancel, open: func(f Format) *ListReader { return newListReader(f, a.o, take) }}
		if err := l.serve(next, page); err != nil {
			return err
		}
		more := l.list.Continue()
		if more == "" {
			return nil
		}
		query.Set("continue", more)
		query.Del("resourceVersion")
		query.Del("resourceVersionMatch")
	}
}

// listing is the http.ResponseWriter that one page of a list is read from.
type listing struct {
	header http.Header
	cancel context.CancelFunc // ends a request whose response can't be used
	open   func(Format) *ListReader
	list   *ListReader
	err    error

	refused bool // the server's response is no list
	page    int  // bytes of that
}

// maxRefusal is how much of a response with another status than 200 is accepted, and dropped. The server has not failed where
// it refuses: 410, Expired, is usual.
const maxRefusal = 64 << 10

// serve reads one page.
func (l *listing) serve(next http.Handler, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			err = io.ErrUnexpectedEOF
		} else if p != nil {
			panic(p)
		}
	}()
	next.ServeHTTP(l, r)
	l.WriteHeader(http.StatusOK)
	if l.err != nil {
		return l.err
	}
	return l.list.Close()
}

func (l *listing) Header() http.Header { return l.header }

func (l *listing) WriteHeader(status int) {
	if status < 200 || l.list != nil || l.err != nil {
		return
	}
	format, ok := FormatOf(l.header.Get("Content-Type"))
	encoding := l.header.Get("Content-Encoding")
	switch {
	case status != http.StatusOK:
		l.refused = true
		l.err = fmt.Errorf("watchcodec: the server responds to the list with status %d", status)
	case !ok || encoding != "" && encoding != "identity":
		l.err = errors.New("watchcodec: the server's list is in a form that can't be read")
	default:
		l.list = l.open(format)
	}
}

func (l *listing) Write(p []byte) (int, error) {
	l.WriteHeader(http.StatusOK)
	if l.err == nil {
		_, l.err = l.list.Write(p)
	}
	switch {
	case l.refused && l.page+len(p) <= maxRefusal:
		l.page += len(p)
	case l.err != nil:
		l.cancel()
		return 0, &response.TransformError{Err: l.err} // not the client's failure
	}
	return len(p), nil
}

// Flush serves handlers that assert http.Flusher. There is nothing to flush to.
func (l *listing) Flush() { l.WriteHeader(http.StatusOK) }

// FlushError serves http.ResponseController.
func (l *listing) FlushError() error {
	l.Flush()
	return nil
}
