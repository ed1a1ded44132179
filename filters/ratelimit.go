package filters

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/bound"
	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/record"
	"github.com/culvert-go/culvert/internal/response"
)

// RateLimitOptions configures RateLimit. Times are as package culvert says: 0 is the default, a
// negative bound is none.
type RateLimitOptions struct {
	// Requests is how many requests a client may make in each Per in the long run. Required.
	Requests int
	// Per is the time for Requests; 0 means one second. Per divided by Requests is rounded up to a
	// nanosecond.
	Per time.Duration
	// Burst is the size of a bucket: how many requests a client may make at once after a time without
	// requests; 0 means Requests.
	Burst int
	// Key returns whose bucket a request takes a token from: a user's, an API key's. A request with the
	// key "" is not limited. It must be safe for concurrent use, and a panic of it is the handler's. nil
	// means the address of ClientAddr, an IPv6 address without its last bits; requests whose address is
	// not known, those over unix sockets for instance, then share one bucket.
	//
	// Security: a client that may choose its key freely is not limited.
	Key func(*http.Request) string
	// IPv6Bits is how many leading bits of an IPv6 address make the key if Key is nil, from 1 to 128;
	// 0 means 64, the size of the network that one client usually has (RFC 4291 section 2.5.4).
	IPv6Bits int
	// MaxKeys is the maximum number of buckets in memory; 0 means 65,536. A bucket takes about 150 bytes,
	// regardless of the length of its key. If none of them is full when another one is needed, the one with the
	// most tokens is given to the new client, with these tokens: beyond MaxKeys some clients may do less
	// than they should, and none may do more. It is not used if Store is set.
	MaxKeys int
	// Store holds the buckets in place of this process's memory; nil means in memory.
	Store RateLimitStore
	// StoreTimeout bounds the time of a call of Store; 0 means one second.
	StoreTimeout time.Duration
	// FailOpen serves requests for which Store fails. Without it they are refused with 503. Each failure
	// is logged.
	FailOpen bool
	// Log receives the failures of Store, one record at level Error a second at most; nil means
	// slog.Default().
	Log *slog.Logger
	// Policy is the name of the limit in the header fields RateLimit and RateLimit-Policy, which are then
	// sent with each response to a request that has a key: printable ASCII without quotes and
	// backslashes. "" means that the fields are not sent.
	Policy string
	// DryRun serves all requests, and sends no header fields: OnLimited shows which would be refused.
	DryRun bool
	// OnLimited, if not nil, is called with each request that is refused because of its rate, or would be
	// without DryRun. It must be safe for concurrent use, and a panic of it is the handler's.
	OnLimited func(*http.Request, RateLimitState)
}

// RateLimit returns a filter that bounds the rate of requests by a token bucket for each client.
// A bucket holds Burst tokens at first. It gains Requests tokens in each Per, up to Burst, and
// each request takes one. A request that finds none is refused with 429 (RFC 6585 section 4),
// with the seconds until there is one in Retry-After, rounded up (RFC 9110 section 10.2.3). It
// takes nothing: a client that continues to send requests is served at its rate. An upgrade or a CONNECT
// takes one token, the bytes of the tunnel none.
//
// With a Policy each response has the header fields of draft-ietf-httpapi-ratelimit-headers-11:
//
//	RateLimit-Policy: "name";q=100;w=60
//	RateLimit: "name";r=42;t=26
//
// q is Burst, and w the seconds in which an empty bucket becomes full. r is the number of tokens that
// are left. t is the number of seconds until there is one more or, if it is longer, in which r tokens
// are gained, so that r in t is never more than the rate (section 6 of the draft). Both times are
// rounded up. Fields of the target, or of another RateLimit, remain beside them.
//
// All handlers of one filter share the buckets. Place it inside of RealIP, and outside of what is
// expensive. The memory is one process's: use a Store for a limit on several gateways.
//
// RateLimit returns an error if Requests is not positive, if another option is out of range, or if an
// empty bucket would need more than 292 years to become full.
func RateLimit(o RateLimitOptions) (culvert.Filter, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("filters: RateLimit: %w", err)
	}
	o.setDefaults()
	bucket := RateLimitBucket{Burst: o.Burst, Interval: (o.Per-1)/time.Duration(o.Requests) + 1}
	if bucket.Interval > math.MaxInt64/time.Duration(o.Burst) {
		return nil, errors.New("filters: RateLimit: a bucket would not become full in 292 years")
	}
	l := &rateLimit{o: o, bucket: bucket}
	if o.Store == nil {
		l.memory = newBuckets(o.MaxKeys, bucket)
	}
	if o.Policy != "" {
		l.policy = `"` + o.Policy + `";q=` + strconv.Itoa(o.Burst) + ";w=" + seconds(bucket.capacity())
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.serve(w, r, next) })
	}, nil
}

// maxField is the largest integer of a structured field (RFC 9651 section 3.3.1).
const maxField = 999_999_999_999_999

func (o *RateLimitOptions) check() error {
	switch {
	case o.Requests <= 0:
		return errors.New("RateLimitOptions.Requests is not positive")
	case o.Per < 0 || o.Burst < 0 || o.MaxKeys < 0 || int64(o.Requests) > maxField || int64(o.Burst) > maxField:
		return errors.New("an option is out of range")
	case o.IPv6Bits < 0 || o.IPv6Bits > 128:
		return errors.New("RateLimitOptions.IPv6Bits is not in the range 0 to 128")
	}
	for i := range len(o.Policy) {
		if c := o.Policy[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return fmt.Errorf("invalid character %q in the name of the policy", c)
		}
	}
	return nil
}

func (o *RateLimitOptions) setDefaults() {
	if o.Per == 0 {
		o.Per = time.Second
	}
	if o.Burst == 0 {
		o.Burst = o.Requests
	}
	if o.IPv6Bits == 0 {
		o.IPv6Bits = 64
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = 1 << 16
	}
	o.StoreTimeout = bound.OrDefault(o.StoreTimeout, time.Second)
	if o.Log == nil {
		o.Log = slog.Default()
	}
}

// rateLimit is the state of a RateLimit.
type rateLimit struct {
	o        RateLimitOptions
	bucket   RateLimitBucket
	memory   *buckets // nil: Options.Store
	policy   string   // the value of RateLimit-Policy, "" without fields
	failures failureLog
}

func (l *rateLimit) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	state, limited, err := l.take(w, r)
	switch {
	case err != nil:
		l.fail(r, err)
		if l.o.FailOpen || l.o.DryRun {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		refuse(w, r, http.StatusServiceUnavailable)
	case !limited || l.o.DryRun || state.OK && l.policy == "":
		next.ServeHTTP(w, r)
	case state.OK:
		response.Serve(next, w, r, &response.Hooks{Header: func(_ *http.Request, _ int, h http.Header) { l.addFields(h, state) }})
	default:
		w.Header().Set("Retry-After", seconds(max(state.Next, 1)))
		if l.policy != "" {
			l.addFields(w.Header(), state)
		}
		refuse(w, r, http.StatusTooManyRequests)
	}
}

// take takes a token for r, and calls OnLimited if there is none. limited reports whether r has a key.
func (l *rateLimit) take(w http.ResponseWriter, r *http.Request) (state RateLimitState, limited bool, err error) {
	returned := false
	defer clientbody.LeavePanicked(w, r, &returned) // of the user's functions
	var space [64]byte
	var address []byte
	var key string
	if l.o.Key == nil {
		address = l.appendAddress(space[:0], ClientAddr(r))
	} else if key = l.o.Key(r); key == "" {
		returned = true
		return state, false, nil
	}
	switch {
	case l.memory == nil:
		state, err = l.askStore(r.Context(), key+string(address))
	case address != nil:
		state = l.memory.take(bucketKeyOf(address))
	default:
		state = l.memory.take(bucketKeyOf(key))
	}
	if err == nil && !state.OK && l.o.OnLimited != nil {
		l.o.OnLimited(r, state)
	}
	returned = true
	return state, true, err
}

// appendAddress appends the key of an address: an IPv4 address or an IPv6 network.
func (l *rateLimit) appendAddress(b []byte, addr netip.Addr) []byte {
	switch {
	case !addr.IsValid():
		return append(b, "unknown"...)
	case addr.Is4():
		return addr.AppendTo(b)
	}
	network, _ := addr.Prefix(l.o.IPv6Bits) // of a number of bits that was checked
	return network.AppendTo(b)
}

// askStore calls Store.Take, and corrects a state that can't be.
func (l *rateLimit) askStore(ctx context.Context, key string) (RateLimitState, error) {
	ctx, cancel := context.WithTimeout(ctx, l.o.StoreTimeout)
	defer cancel()
	s, err := l.o.Store.Take(ctx, key, l.bucket)
	s.Tokens = min(max(s.Tokens, 0), l.bucket.Burst)
	s.Next = min(max(s.Next, 0), l.bucket.capacity())
	return s, err
}

// fail logs that Store has failed. The failure is the one of the exchange if r is refused. It is not the
// store's if r's client has disconnected.
func (l *rateLimit) fail(r *http.Request, err error) {
	err = fmt.Errorf("filters: RateLimit: the store: %w", err)
	if r.Context().Err() == nil {
		l.failures.log(r.Context(), l.o.Log, err)
	}
	if recorder := record.From(r.Context()); recorder != nil && !l.o.FailOpen && !l.o.DryRun {
		recorder.Err = err
	}
}

// addFields adds the fields of draft-ietf-httpapi-ratelimit-headers-11.
func (l *rateLimit) addFields(h http.Header, s RateLimitState) {
	h.Add("RateLimit-Policy", l.policy)
	window := max(s.Next, time.Duration(s.Tokens)*l.bucket.Interval)
	h.Add("RateLimit", `"`+l.o.Policy+`";r=`+strconv.Itoa(s.Tokens)+";t="+seconds(window))
}

// seconds returns d as a number of seconds, rounded up.
func seconds(d time.Duration) string {
	if d <= 0 {
		return "0"
	}
	return strconv.FormatInt(int64((d-1)/time.Second+1), 10)
}
