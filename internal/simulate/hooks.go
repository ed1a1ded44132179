package simulate

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/cachectl"
	"github.com/culvert-go/culvert/proxy"
)

// HooksPlan says what a program does in the proxy's hooks.
type HooksPlan struct {
	Rewrite         bool // Options.Rewrite sets a field, and deletes another one
	Modify          ModifyHook
	ErrorHandler    bool
	RequestTrailer  TrailerPolicy
	ResponseTrailer TrailerPolicy
	Warn            bool // cachectl.Warn is the outermost filter
	OnAttempt       bool // Options.OnAttempt adds a field to each attempt
}

// ModifyHook says what Options.ModifyResponse does.
type ModifyHook int

const (
	// ModifyNothing changes nothing.
	ModifyNothing ModifyHook = iota
	// ModifyEdits sets a field, and hides another one.
	ModifyEdits
	// ModifyReplaces serves a page in place of a 404.
	ModifyReplaces
	// ModifyRestates changes the status: see restated.
	ModifyRestates
)

// TrailerPolicy says which trailers are forwarded.
type TrailerPolicy int

const (
	// TrailersAll forwards all.
	TrailersAll TrailerPolicy = iota
	// TrailersNone forwards none.
	TrailersNone
	// TrailersFirst forwards X-Trailing-0.
	TrailersFirst
)

// policy returns the function for proxy.Options.
func (t TrailerPolicy) policy() func(string) bool {
	return [](func(string) bool){nil, proxy.OnlyTrailers(), proxy.OnlyTrailers("x-trailing-0")}[t]
}

// want returns the value of a trailer as it must arrive.
func (t TrailerPolicy) want(f [2]string) []string {
	if t == TrailersNone || t == TrailersFirst && f[0] != "X-Trailing-0" {
		return nil
	}
	return []string{f[1]}
}

// addHooks chooses histories with hooks.
func (p *Plan) addHooks(c *Choices) {
	if !c.Bool(5) {
		return
	}
	p.Gateway.Hooks = HooksPlan{Rewrite: c.Bool(2), Modify: ModifyHook(c.Int(4)), ErrorHandler: c.Bool(2), RequestTrailer: TrailerPolicy(c.Int(3)), ResponseTrailer: TrailerPolicy(c.Int(3)), Warn: c.Bool(2)}
}

// Fields that hooks set.
const (
	rewrittenField = "X-Rewritten"
	modifiedField  = "X-Modified"
	failedField    = "X-Failed"
)

// deletedField is the one that Rewrite deletes.
const deletedField = "X-Sent-1"

// options adds the hooks to the proxy's.
func (h *HooksPlan) options(o *proxy.Options) {
	o.RequestTrailer, o.ResponseTrailer = h.RequestTrailer.policy(), h.ResponseTrailer.policy()
	if h.Rewrite {
		before := o.Rewrite
		o.Rewrite = func(out *proxy.Outbound) {
			before(out)
			out.Out.Header.Set(rewrittenField, "1")
			out.Out.Header.Del(deletedField)
		}
	}
	switch h.Modify {
	case ModifyEdits:
		o.ModifyResponse = func(a *proxy.Response) {
			a.Header.Set(modifiedField, "1")
			a.Header.Del("Cache-Control")
		}
	case ModifyReplaces:
		o.ModifyResponse = func(a *proxy.Response) {
			if a.Status == http.StatusNotFound {
				a.ServeInstead(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set(modifiedField, "1")
					w.WriteHeader(http.StatusNotFound)
					_, _ = io.WriteString(w, "a page of the gateway's own")
				}))
			}
		}
	case ModifyRestates:
		o.ModifyResponse = func(a *proxy.Response) {
			a.Header.Set(modifiedField, "1")
			a.Status = h.restated(a.Status)
		}
	}
	if h.ErrorHandler {
		o.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, e *culvert.Error) {
			w.Header().Set(failedField, "1")
			http.Error(w, "a page for "+e.Kind.String(), e.Status())
		}
	}
}

// modified changes a response as Options.ModifyResponse does.
func (h *HooksPlan) modified(m *message) {
	switch {
	case h.Modify == ModifyEdits:
		m.acts("ModifyResponse edits")
		m.header[modifiedField], m.header["Cache-Control"] = "1", ""
	case h.Modify == ModifyReplaces && m.status == http.StatusNotFound:
		m.takeAway(http.StatusNotFound)
		m.media = "text/plain; charset=utf-8"
	case h.Modify == ModifyRestates:
		m.header[modifiedField] = "1"
		if status := h.restated(m.status); status != m.status {
			m.acts("ModifyResponse changes a status")
			m.status = status
		}
	}
}

// restated is what becomes of a status. A 302 loses its content with it.
func (h *HooksPlan) restated(status int) int {
	if h.Modify == ModifyRestates {
		switch status {
		case http.StatusNotFound:
			return http.StatusGone
		case http.StatusFound:
			return http.StatusNoContent
		}
	}
	return status
}

// withoutContent reports whether the client gets no content with a response of a target.
func (r *ruler) withoutContent(plan *ResponsePlan) bool {
	status := r.w.plan.Gateway.Hooks.restated(plan.Status)
	return r.e.Method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified
}

// leftOut reports whether the content of an attempt's response is not read, since the program has the gateway leave it out
// or a filter sends other content in its place.
func (r *ruler) leftOut(attempt int) bool {
	status := r.e.response(attempt).Status
	return status == http.StatusFound && r.w.plan.Gateway.Hooks.restated(status) == http.StatusNoContent ||
		r.w.passage(r.e, r.client.Kind).response(attempt).replaced
}

// hooks: the program's hooks take effect once for each request.
func (r *ruler) hooks() {
	h := &r.w.plan.Gateway.Hooks
	for _, s := range r.sights {
		if got := s.Header.Values(rewrittenField); h.Rewrite != (len(got) > 0) || len(got) > 1 {
			r.fail("hooks", "%s saw %s: %q, Rewrite sets it: %v", s.Target, rewrittenField, got, h.Rewrite)
		}
		if got := s.Header.Values(deletedField); h.Rewrite && len(got) > 0 {
			r.fail("hooks", "%s saw %s, which Rewrite deletes", s.Target, deletedField)
		}
	}
	if sets := h.Modify == ModifyEdits || h.Modify == ModifyRestates; r.o.Tunnel != nil && sets != (r.o.Header.Get(modifiedField) == "1") {
		r.fail("hooks", "the client of a tunnel saw %s: %q, ModifyResponse sets it: %v", modifiedField, r.o.Header.Values(modifiedField), sets)
	}
	if r.o.Tunnel != nil && r.client.Kind == WebSocket && r.e.Tunnel.Posted == 0 && r.o.Header.Get("Sec-WebSocket-Accept") == "" {
		r.fail("hooks", "a 101 for a WebSocket without Sec-WebSocket-Accept: %v", r.o.Header)
	}
	if len(r.w.plan.Gateway.Filters) > 0 || r.o.Header == nil || r.client.Kind.upgrades() || r.client.Kind == Malformed {
		return
	}
	failed := r.o.Header.Values(failedField)
	told := r.w.journal.errors[r.e.Token] > 0
	replaced := h.Modify == ModifyReplaces && r.o.Status == http.StatusNotFound
	if told && r.o.Attempt < 0 && !replaced && h.ErrorHandler != (len(failed) == 1) {
		r.fail("hooks", "%d of the gateway's own with %s: %q, ErrorHandler sets it: %v", r.o.Status, failedField, failed, h.ErrorHandler)
	}
	if (r.o.Attempt >= 0 || !told || !h.ErrorHandler) && len(failed) > 0 {
		r.fail("hooks", "the client saw %s: %q, of attempt %d; OnError was called: %v", failedField, failed, r.o.Attempt, told)
	}
}

// warnings collects the warnings of a cachectl.Warn: it warns once of each route and status.
type warnings struct {
	g    *gateway
	mu   sync.Mutex
	told map[string]int
}

// warn returns the filter.
func (g *gateway) warn() (culvert.Filter, error) {
	return cachectl.Warn(slog.New(&warnings{g: g, told: map[string]int{}}))
}

// Enabled implements slog.Handler.
func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (w *warnings) Handle(_ context.Context, record slog.Record) error {
	key := ""
	record.Attrs(func(a slog.Attr) bool {
		if slices.Contains([]string{"route", "status"}, a.Key) {
			key += " " + a.Value.String()
		}
		return true
	})
	w.mu.Lock()
	w.told[key]++
	n := w.told[key]
	w.mu.Unlock()
	w.g.journal.effects.Add("cachectl.Warn warns", 1)
	if n > 1 {
		w.g.journal.Break("warn", "%d warnings of%s", n, key)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w *warnings) WithGroup(string) slog.Handler { return w }
