package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/culvert-go/culvert/watchcodec"
)

// pageSize is the number of objects requested at once, as in client-go.
const pageSize = "500"

// List lists a collection once, page by page, and calls take with each object, which is valid until
// take returns. r is a request for the collection as Options.Request is, in ctx. List returns the
// collection and the resourceVersion of the list. A panic of take is passed on to the caller of
// List.
func List(ctx context.Context, h http.Handler, r *http.Request, take func(*watchcodec.Object) error) (c Collection, version string, err error) {
	s := &Source{o: Options{Handler: h, Request: r}}
	return s.pages(ctx, func() {}, func(o *watchcodec.Object) error {
		defer s.guard()
		return take(o)
	})
}

// list calls Sink.Set with all objects.
func (s *Source) list(ctx context.Context) error {
	c, version, err := s.pages(ctx, s.o.Sink.Found, func(o *watchcodec.Object) error { return wrapSink(s.o.Sink.Set(o)) })
	var refused *RefusedError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusGone:
		return errExpired // between two pages
	case err != nil:
		return err
	}
	s.version = version
	s.o.Sink.Replaced(c)
	return nil
}

func (s *Source) pages(ctx context.Context, found func(), take func(*watchcodec.Object) error) (c Collection, version string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := ""
	for {
		query := url.Values{"limit": {pageSize}}
		if next != "" {
			query.Set("continue", next)
		}
		var list *watchcodec.ListParser
		open := func(f watchcodec.Format) io.WriteCloser {
			c.Format = f
			list = watchcodec.NewListParser(f, s.o.MaxObject, take)
			return list
		}
		r := s.request(ctx, query)
		r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), "as=PartialObjectMetadata;", "as=PartialObjectMetadataList;"))
		if err := s.receive(r, found, open, cancel); err != nil {
			return c, "", err
		}
		if next = list.Continue(); next != "" {
			continue
		}
		kind := ""
		c.APIVersion, kind = list.Kind()
		ok := false
		if c.Kind, ok = strings.CutSuffix(kind, "List"); !ok || list.ResourceVersion() == "" {
			return c, "", fmt.Errorf("source: a %s in the place of a list, or one without a resourceVersion", kind)
		}
		return c, list.ResourceVersion(), nil
	}
}
