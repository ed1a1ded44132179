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
		list, err := x.readPage(next, page, cancel, take)
		if err != nil {
			return err
		}
		more := list.Continue()
		if more == "" {
			return nil
		}
		query.Set("continue", more)
		query.Del("resourceVersion")
		query.Del("resourceVersionMatch")
	}
}

// readPage parses the response of next to a request for one page of a list. It calls cancel, which
// ends the request, if the response can't be used.
func (x *exchange) readPage(next http.Handler, r *http.Request, cancel func(), take func(*Object) error) (list *ListParser, err error) {
	w := response.NewReceiver(func(status int, h http.Header) (io.WriteCloser, error) {
		format, ok := FormatOf(h.Get("Content-Type"))
		encoding := h.Get("Content-Encoding")
		switch {
		case status != http.StatusOK:
			return &refusedList{err: fmt.Errorf("watchcodec: the server responds to the list with status %d", status)}, nil
		case !ok || encoding != "" && encoding != "identity":
			return nil, errors.New("watchcodec: the server's list is in a form that can't be read")
		}
		list = newListParser(format, listRules{maxObject: x.o.MaxObject, tables: x.o.Tables}, take)
		return list, nil
	}, cancel)
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			err = io.ErrUnexpectedEOF
		} else if p != nil {
			panic(p)
		}
	}()
	next.ServeHTTP(w, r)
	return list, w.Close()
}

// maxRefusal bounds the body of a response with another status than 200, which is read and dropped.
// Such a refusal is not a failure of the server: 410, Expired, is usual.
const maxRefusal = 64 << 10

// refusedList drops the content of a refusal.
type refusedList struct {
	err  error // of the list
	size int
}

func (l *refusedList) Write(p []byte) (int, error) {
	if l.size += len(p); l.size > maxRefusal {
		return 0, l.err
	}
	return len(p), nil
}

// Discards implements response.Discards.
func (l *refusedList) Discards() bool { return true }

func (l *refusedList) Close() error { return l.err }
