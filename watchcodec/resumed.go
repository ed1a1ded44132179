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
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/response"
)

// listingTimeout bounds how long a watch is held up by the list of the objects that its client has
// seen.
const listingTimeout = 30 * time.Second

// listingPage is the number of objects requested at once, as in client-go.
const listingPage = "500"

// newVisible returns the visibility for the watch that r requests of next.
func (x *exchange) newVisible(next http.Handler, r *http.Request) *visibility {
	query := r.URL.Query()
	version := query.Get("resourceVersion")
	initial, given := query["sendInitialEvents"]
	// From "" or "0" a server sends all objects first. If sendInitialEvents is false, it sends only
	// later events, to a client that claims to have no objects.
	if version == "" || version == "0" || given && parseBool(initial) {
		return newVisibility(x.rewrite)
	}
	return newResumedVisibility(x.rewrite, version, func(version string, take func(*Object) error) error {
		return x.listAt(next, r, version, take)
	})
}

// CollectionPath returns the path of the collection that the request is for, without the legacy
// prefix /watch/ and without the name of an object.
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

// listAt lists the collection of the watch that r requests, as it was at a version, with the
// client's credentials and in the format of the watch.
func (x *exchange) listAt(next http.Handler, r *http.Request, version string, take func(*Object) error) error {
	ctx, cancel := context.WithTimeout(nested.With(r.Context()), listingTimeout)
	defer cancel()
	query := url.Values{"limit": {listingPage}, "resourceVersion": {version}, "resourceVersionMatch": {"Exact"}}
	watched := r.URL.Query()
	for _, name := range []string{"labelSelector", "fieldSelector", "includeObject"} {
		if values := watched[name]; len(values) > 0 {
			query[name] = values
		}
	}
	if x.req.Name != "" && !query.Has("fieldSelector") { // of the legacy path /watch/…/NAME
		query.Set("fieldSelector", "metadata.name="+x.req.Name)
	}
	for {
		// The result of r is that of the watch, which another goroutine may be writing.
		own, _ := record.WithNew(ctx)
		page := r.Clone(own)
		page.Method, page.Body, page.ContentLength, page.RequestURI = http.MethodGet, http.NoBody, 0, ""
		page.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: x.req.CollectionPath(), RawQuery: query.Encode()}
		page.Header.Set("Accept", strings.ReplaceAll(page.Header.Get("Accept"), "as=PartialObjectMetadata;", "as=PartialObjectMetadataList;"))
		l := &listing{header: http.Header{}, cancel: cancel, open: func(f Format) *ListParser {
			return newListParser(f, listRules{maxObject: x.o.MaxObject, tables: x.o.Tables}, take)
		}}
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

// listing is the http.ResponseWriter for one page of a list, which it parses.
type listing struct {
	header http.Header
	cancel context.CancelFunc // ends a request whose response can't be used
	open   func(Format) *ListParser
	list   *ListParser
	err    error

	refused bool // the server has refused the request
	page    int  // bytes of that response
}

// maxRefusal bounds the body of a response with another status than 200, which is read and dropped.
// Such a refusal is not a failure of the server: 410, Expired, is usual.
const maxRefusal = 64 << 10

// serve requests and parses one page.
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

// Flush is for handlers that assert http.Flusher. There is nothing to flush.
func (l *listing) Flush() { l.WriteHeader(http.StatusOK) }

// FlushError is for http.ResponseController.
func (l *listing) FlushError() error {
	l.Flush()
	return nil
}
