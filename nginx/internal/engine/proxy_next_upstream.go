package engine

import (
	"strconv"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/proxy"
)

// nextUpstream compiles "proxy_next_upstream error|timeout|… ...". nginx distinguishes a
// broken connection from an invalid response (invalid_header); culvert retries after both if
// "error" is given.
func (f *family) nextUpstream(_ *compiler, l *level, d *conf.Directive) error {
	s := f.slot.edit(l)
	r := &s.retry
	if l.first(d.Name) {
		r.Errors, r.Timeouts, r.NonIdempotent = false, false, false
		r.Statuses, s.retryOff = nil, false
	}
	for _, arg := range d.Args {
		switch arg {
		case "error", "invalid_header", "invalid_response":
			r.Errors = true
		case "timeout":
			r.Timeouts = true
		case "non_idempotent":
			r.NonIdempotent = true
		case "http_500", "http_502", "http_503", "http_504", "http_403", "http_404", "http_429":
			status, _ := strconv.Atoi(arg[len("http_"):])
			r.Statuses = append(r.Statuses, status)
		case "not_found":
			r.Statuses = append(r.Statuses, 404)
		case "updating": // it is about a cache
		case "off":
			s.retryOff = true
		default:
			return d.Errorf("invalid value \"%s\"", arg)
		}
	}
	return nil
}

// retryRule combines the directives.
func (s *proxySettings) retryRule() proxy.Retry {
	r := s.retry
	if s.retryOff {
		r.Tries = 1
	}
	return r
}

// failStatuses are those that count as failures of a server: nginx does not count 403 and 404,
// even if they lead to the next one.
func (s *proxySettings) failStatuses() []int {
	var list []int
	for _, status := range s.retry.Statuses {
		if status != 403 && status != 404 {
			list = append(list, status)
		}
	}
	return list
}
