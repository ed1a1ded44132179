package filters

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/textproto"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/response"
)

// RequestIDOptions configures RequestID. The zero value makes a new id for each
// request and sends it in X-Request-Id.
type RequestIDOptions struct {
	// Field is the name of the header field; "" means "X-Request-Id". It can't be Host,
	// Content-Length or a hop-by-hop field.
	Field string
	// Trust keeps the id that a request has already, if it consists of 1 to 128 letters,
	// digits and characters of "-_.+/=:". Security: clients can then choose their ids in
	// the logs, unless a proxy in front sets the field.
	Trust bool
	// New returns a new id; nil means crypto/rand.Text: 26 random letters and digits. It
	// must be safe for concurrent use.
	New func() string
}

// RequestID returns a filter that gives each request an id. It sets the header field of the
// request, which the target receives, and that of the response. RequestIDFrom returns the
// id. RequestID returns an error if the field can't be set.
func RequestID(o RequestIDOptions) (culvert.Filter, error) {
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
			// It replaces the field of the target's response.
			response.Serve(next, w, r, &response.Hooks{Header: func(_ *http.Request, _ int, h http.Header) { h[o.Field] = []string{id} }})
		})
	}, nil
}

type requestIDKey struct{}

// RequestIDFrom returns the id that RequestID has given to the request with the context ctx, "" if it has none.
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
