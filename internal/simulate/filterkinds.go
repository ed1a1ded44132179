package simulate

import (
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/watchcodec"
)

// filterKind is a filter that may stand in front of the proxy. None of them changes
// bodies of the simulator's media type; fields that they add to responses are ignored by
// the rules, which look at those that the targets sent.
type filterKind struct {
	name string
	make func(*gateway) (filters.Filter, error)
}

var filterKinds = []filterKind{
	{"AccessLog", func(*gateway) (filters.Filter, error) {
		return filters.AccessLog(slog.New(slog.NewTextHandler(io.Discard, nil))), nil
	}},
	{"CombinedLog", func(*gateway) (filters.Filter, error) { return filters.CombinedLog(io.Discard), nil }},
	{"RequestID", func(*gateway) (filters.Filter, error) {
		return filters.RequestID(filters.RequestIDOptions{New: func() string { return "id" }})
	}},
	{"RealIP", func(*gateway) (filters.Filter, error) {
		return filters.RealIP(filters.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}})
	}},
	{"Headers", func(*gateway) (filters.Filter, error) {
		return filters.Headers(filters.HeaderRule{Status: filters.AnyStatus, Set: http.Header{"X-Rule": {"set"}}})
	}},
	{"Compress", func(*gateway) (filters.Filter, error) { return filters.Compress(filters.CompressOptions{}) }},
	{"Decompress", func(*gateway) (filters.Filter, error) {
		return filters.Decompress(filters.DecompressOptions{Requests: true, Responses: true})
	}},
	{"BodyLimit", func(*gateway) (filters.Filter, error) { return filters.BodyLimit(250_000) }},
	{"Concurrency", func(*gateway) (filters.Filter, error) {
		return filters.Concurrency(filters.ConcurrencyOptions{Max: 3, Queue: 3})
	}},
	{"Timeout", func(*gateway) (filters.Filter, error) { return filters.Timeout(20 * time.Second) }},
	{"Recover", func(*gateway) (filters.Filter, error) {
		return filters.Recover(slog.New(slog.NewTextHandler(io.Discard, nil))), nil
	}},
	{"cachectl", func(*gateway) (filters.Filter, error) { return cachectl.New(cachectl.ErrorPages()) }},
	{"Records", func(*gateway) (filters.Filter, error) {
		return watchcodec.NewRecords(watchcodec.RecordsOptions{})
	}},
	{"OnResponse", func(*gateway) (filters.Filter, error) {
		return filters.OnResponse(filters.ResponseHooks{}), nil
	}},
}
