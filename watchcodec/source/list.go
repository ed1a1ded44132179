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

// pageSize is how many objects are asked for at once, as client-go does.
const pageSize = "500"

// list sets all objects, page by page.
func (s *Source) list(ctx context.Context) error {
	next := ""
	for {
		query := url.Values{"limit": {pageSize}}
		if next != "" {
			query.Set("continue", next)
		}
		var list *watchcodec.ListReader
		var format watchcodec.Format
		a := &answer{header: http.Header{}, found: s.o.Sink.Found, open: func(f watchcodec.Format) io.WriteCloser {
			format = f
			list = watchcodec.NewListReader(f, s.o.MaxObject, func(o *watchcodec.Object) error { return wrapSink(s.o.Sink.Set(o)) })
			return list
		}}
		r := s.request(ctx, query)
		r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), "as=PartialObjectMetadata;", "as=PartialObjectMetadataList;"))
		err := a.end(s.serve(a, r))
		var refused *RefusedError
		switch {
		case errors.As(err, &refused) && refused.Status == http.StatusGone:
			return errExpired // in the middle of the pages
		case err != nil:
			return err
		}
		if next = list.Continue(); next != "" {
			continue
		}
		apiVersion, kind := list.Kind()
		kind, ok := strings.CutSuffix(kind, "List")
		if !ok || list.ResourceVersion() == "" {
			return fmt.Errorf("source: a %s in the place of a list, or one without a resourceVersion", kind)
		}
		s.version = list.ResourceVersion()
		s.o.Sink.Replaced(Collection{format, apiVersion, kind})
		return nil
	}
}
