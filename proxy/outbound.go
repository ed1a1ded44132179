package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/client"
	"github.com/culvert-go/culvert/internal/fieldnames"
	"github.com/culvert-go/culvert/internal/header"
)

// Outbound is a request on its way to a target, as Options.Rewrite sees it. It is good until
// the proxy returns: what is to be kept of it must be copied.
type Outbound struct {
	// In is the client's request as the filters left it. It must not be changed.
	In *http.Request
	// Out is the request that will be sent. Its header is In's without the hop-by-hop fields,
	// and without the fields by which a proxy describes its client, since a client may forge
	// them: Forwarded, X-Forwarded-For, -Host, -Proto, -Port, -Prefix, -Protocol, -Scheme,
	// -Server, -Ssl and -Uri, X-Real-IP, X-Client-IP, X-Cluster-Client-IP, X-Original-Host, -Uri
	// and -URL, X-Rewrite-URL, X-Scheme, X-Url-Scheme and Front-End-Https, and each of them with
	// underscores for hyphens, since CGI and WSGI do not distinguish those names. Such fields
	// that a filter has set are removed as well: set them in Options.Rewrite. Fields of a
	// vendor, such as CF-Connecting-IP, are kept.
	//
	// If filters.RealIP trusts the connection's peer, the peer's fields are kept, except those
	// with underscores and those for address, host and scheme, which SetXForwarded and
	// SetForwarded set. KeepForwarded keeps all.
	//
	// Out.URL.Scheme is the group's, "" if Options.Upstream is not one Group. If Options.Transport is set to another transport than an
	// *upstream.Transport for HTTP/1.1, the hook may change it to the other one of "http" and
	// "https"; "" means the group's.
	//
	// Header fields that frame a message or belong to one connection, such as
	// "content-length", are dropped under names that are not in canonical form.
	//
	// Out.URL.Path, RawPath and RawQuery are the client's. A RawPath that decodes to Path is sent
	// byte for byte. Out.URL.Opaque, if the hook sets it, is sent unchanged in place of the path.
	// Out.URL.Host is replaced by the target's address. Out.Host is the Host field; "" sends the
	// target's address. ContentLength and TransferEncoding are always In's, and so is Body: another
	// Body is an Error of Kind Internal (500). A filter can change them.
	//
	// An invalid scheme, or a method, field, host or target that can't be written, such as a value
	// with a line feed, is an Error of Kind Internal (500): nothing is sent, there is no retry, and
	// it does not count as the target's failure.
	Out *http.Request
	// FieldNames are the names of Out.Header's fields as they are sent over HTTP/1.1, one for each line, in their order; those
	// of the client, if Options.KeepFieldNames is set, and else nil: canonical names without an order. Names that
	// Out.Header has no field for are passed over, and fields without a name follow, so that both can be changed
	// independently. Host, Content-Length, Transfer-Encoding and Connection are the places of the proxy's own fields.
	FieldNames []string
	// DropInterim keeps the interim responses of the targets, 103 (Early Hints) for instance, from the client. A 100 that
	// the client expects is the proxy's own in any case.
	DropInterim bool

	body      io.ReadCloser // Out's, before the hook
	failure   error         // of Fail
	forwarded [3]string     // memory for SetXForwarded
}

// newOutbound copies in for one exchange. protocol is that of an upgrade, "" for none.
func (f *forwarding) newOutbound(in *http.Request, protocol, scheme string) *Outbound {
	f.request = *in
	out := &f.request
	f.url = url.URL{
		Scheme:     scheme,
		Path:       in.URL.Path,
		RawPath:    in.URL.RawPath,
		ForceQuery: in.URL.ForceQuery,
		RawQuery:   in.URL.RawQuery,
	}
	out.URL = &f.url
	f.copyHeader(in.Header)
	out.Header = f.header
	allowed := []string{}
	if protocol != "" {
		allowed = append(allowed, protocol)
	}
	header.SanitizeRequest(out, allowed)
	header.RemoveClaims(out.Header, client.From(in.Context()) != nil)
	out.Close = false
	out.RequestURI = ""
	f.outbound = Outbound{In: in, Out: out, body: out.Body}
	if f.p.o.KeepFieldNames {
		f.outbound.FieldNames = f.copyNames(fieldnames.Of(in.Context()))
	}
	return &f.outbound
}

// copyNames copies names into memory that f has, with room for those that a hook adds.
func (f *forwarding) copyNames(names fieldnames.List) []string {
	if names == nil {
		return nil
	}
	if f.spelt == nil {
		f.spelt = make([]string, 0, 32)
	}
	f.spelt = append(f.spelt, names...)
	return f.spelt
}

// copyHeader is http.Header.Clone into memory that f has.
func (f *forwarding) copyHeader(from http.Header) {
	if f.values == nil {
		f.values = make([]string, 0, 16)
	}
	for name, values := range from {
		if values == nil {
			f.header[name] = nil // what keeps a field from being invented
			continue
		}
		start := len(f.values)
		f.values = append(f.values, values...) // the fields before keep their memory where there is not enough
		f.header[name] = f.values[start:len(f.values):len(f.values)]
	}
}

// Fail has the exchange fail with err before a target is picked. ErrorHandler and OnError get it as a *culvert.Error of Kind
// Internal (500). If err is, or wraps, a *culvert.Error that is the client's fault, NoTarget or Busy, its Kind and RetryAfter are
// used: Forbidden (403), for instance. nil undoes an earlier call.
func (o *Outbound) Fail(err error) { o.failure = err }

// settle completes the request after the hook. A scheme that e does not speak is an error: a
// transport's refusal would count as the target's failure.
func (o *Outbound) settle(scheme string, e exchanger) *culvert.Error {
	if o.failure != nil {
		return hookFailure(o.failure, false)
	}
	out := o.Out
	if out.URL.Scheme == "" {
		out.URL.Scheme = scheme
	}
	if scheme != "" { // otherwise only the lease knows
		if err := checkScheme(out.URL.Scheme, scheme, e); err != nil {
			return &culvert.Error{Kind: culvert.Internal, Err: err}
		}
	}
	if !sameBody(o.body, out.Body) {
		return &culvert.Error{Kind: culvert.Internal, Err: errOwnBody}
	}
	header.RemoveMisspelt(out.Header)
	nameAgent(out.Header)
	// The body is always the client's.
	out.ContentLength, out.TransferEncoding = o.In.ContentLength, o.In.TransferEncoding
	if out.URL.Opaque == "" {
		out.URL.Opaque = rawPath(out.URL) // net/http would encode some paths anew
	}
	return nil
}

var errOwnBody = errors.New("another Outbound.Out.Body than the client's: only a filter can change a body")

// sameBody reports whether Rewrite has left the body as it was.
func sameBody(before, out io.ReadCloser) (same bool) {
	if before == nil || before == http.NoBody || out == nil || out == http.NoBody {
		return (before == nil || before == http.NoBody) == (out == nil || out == http.NoBody)
	}
	defer func() { same = same || recover() != nil }() // a filter's body may be of a type that can't be compared
	return before == out
}

// checkScheme allows the group's scheme. A transport may be given the other one as well.
func checkScheme(scheme, ofGroup string, e exchanger) error {
	_, transport := e.(*transportExchange)
	if scheme == ofGroup || transport && (scheme == "http" || scheme == "https") {
		return nil
	}
	return fmt.Errorf("scheme %q in Outbound.Out.URL", scheme)
}

// nameAgent keeps net/http from inventing a User-Agent where h has none.
func nameAgent(h http.Header) {
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = noUserAgent
	}
}

// noUserAgent is never written to.
var noUserAgent = []string{""}

// rawPath returns the path's bytes as they came. url.Parse keeps them in
// RawPath exactly where they differ from the default encoding of Path; a filter
// that changed Path alone has left a RawPath that no longer counts.
func rawPath(u *url.URL) string {
	if strings.HasPrefix(u.Opaque, "/") {
		return u.Opaque
	}
	if u.RawPath != "" {
		if path, err := url.PathUnescape(u.RawPath); err == nil && path == u.Path {
			return u.RawPath
		}
		return (&url.URL{Path: u.Path}).EscapedPath()
	}
	if u.Path == "" {
		return "/"
	}
	return u.EscapedPath()
}
