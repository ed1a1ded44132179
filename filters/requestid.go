package filters

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/textproto"

	"github.com/culvert-go/culvert/internal/response"
)

// RequestIDOptions configures RequestID. The zero value makes an id for each
// request and names it in X-Request-Id.
type RequestIDOptions struct {
	// Field is the name of the field; "" means "X-Request-Id". It can't be Host,
	// Content-Length or a hop-by-hop field.
	Field string
	// Trust keeps an id that the request already has, if it is one of at most 128
	// letters, digits and -_.+/=: characters. Otherwise every client can choose
	// what stands in the logs.
	Trust bool
	// New makes an id; nil means 26 random letters and digits (crypto/rand.Text).
	New func() string
}

// RequestID returns a filter that gives each request an id: in the request's
// field, which goes to the target, in the answer's field, and in RequestIDFrom.
func RequestID(o RequestIDOptions) (Filter, error) {
	if o.Field == "" {
		o.Field = "X-Request-Id"
	}
	if err := checkField(o.Field); err != nil {
		return nil, fmt.Errorf("filters: RequestID: %w", err)
	}
	o.Field = textproto.CanonicalMIMEHeaderKey(o.Field)
	if o.New == nil {
		o.New = rand.Text
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get(o.Field)
			if !o.Trust || !validID(id) {
				id = o.New()
			}
			r.Header[o.Field] = []string{id}
			r = r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id))
			// A target that answers with the field too must not make two of it.
			response.Serve(next, w, r, &response.Hooks{Head: func(_ *http.Request, _ int, h http.Header) { h[o.Field] = []string{id} }})
		})
	}, nil
}

type requestIDKey struct{}

// RequestIDFrom returns the id that RequestID gave, "" if there is none.
func RequestIDFrom(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

func validID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == '+', c == '/', c == '=', c == ':':
		default:
			return false
		}
	}
	return true
}
