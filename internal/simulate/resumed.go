package simulate

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Watches that continue from a resourceVersion have a path of their own: the filter may list their objects
// (watchcodec.NewFilter), by a path that identifies the watch.
const (
	resumedPath = "/apis/testapigroup.apimachinery.k8s.io/v1/watch/namespaces/r"
	listedPath  = kubePath + "r"
)

// listingTime is how long a filter waits for such a list. The watch is held meanwhile.
const listingTime = 30 * time.Second

// listingPause is how long a target takes for a list that is late.
const listingPause = 7 * time.Second

// resumedVersion is the resourceVersion that clients continue from.
const resumedVersion = 9

// ListingKind is what a target responds to the list that a filter requests for a watch.
type ListingKind int

const (
	// ListingWhole: the list.
	ListingWhole ListingKind = iota
	// ListingPaged: the list in two pages.
	ListingPaged
	// ListingSlow: the list, after a while.
	ListingSlow
	// ListingGone: 410, as from a server that has forgotten that version.
	ListingGone
	// ListingShort: a list that breaks off.
	ListingShort
	// ListingNever: nothing.
	ListingNever
)

// String returns what the target does.
func (k ListingKind) String() string {
	return [...]string{"whole", "in pages", "late", "gone", "broken off", "silent"}[k]
}

// addResumed chooses watches that continue from a resourceVersion, and ones that end with an ERROR event of the server's. In
// every other history most requests of Kubernetes are such watches, behind one filter that hides objects.
func (p *Plan) addResumed(c *Choices) {
	if !p.has(kubeKind.name) {
		return
	}
	most := c.Bool(2) && !p.Gateway.H2Targets
	if most {
		p.hideOnce(c)
	}
	resumable := p.kubeEnders() == 1 && !p.Gateway.H2Targets
	for i := range p.Clients {
		for k := range p.Clients[i].Requests {
			e := &p.Clients[i].Requests[k]
			if most && e.Kube != KubeNothing && e.Method == http.MethodGet {
				e.Kube, e.Wants = KubeWatch, Pick(c, "", kubeProtoOrJSON, kubeTableOrJSON)
			}
			if e.Kube != KubeWatch || e.Method != http.MethodGet {
				continue
			}
			e.Resumed = resumable && (most || c.Bool(2))
			for n := range e.Responses {
				r := &e.Responses[n]
				if most {
					r.beWatch(c)
				}
				r.resume(c, e, n)
			}
		}
	}
}

// kubeEnders returns how many filters look into what is Kubernetes'.
func (p *Plan) kubeEnders() (n int) {
	for _, f := range p.Gateway.Filters {
		if filterKinds[f.Kind].name == kubeKind.name && !f.passes() {
			n++
		}
	}
	return n
}

// hideOnce makes the first of such filters hide objects, and the others pass all.
func (p *Plan) hideOnce(c *Choices) {
	first := true
	for i := range p.Gateway.Filters {
		if f := &p.Gateway.Filters[i]; filterKinds[f.Kind].name == kubeKind.name {
			if f.A = Pick(c, 0, 0, 1, 4); !first {
				f.A = 3
			}
			first = false
		}
	}
}

// beWatch makes the response to a request of Kubernetes a watch that comes to an end, mostly.
func (r *ResponsePlan) beWatch(c *Choices) {
	r.Kube.Verb = KubeWatch
	if r.Media = MediaKubeJSON; r.Kube.Proto {
		r.Media = MediaKubeStream
	}
	for range 4 {
		r.Kube.Events = append(r.Kube.Events, c.Int(64))
	}
	if c.Int(4) > 0 {
		r.calm()
		r.Status, r.Coding, r.Half, r.Stale, r.Body.Length = http.StatusOK, "", false, NotStale, 1<<20
	}
}

// resume chooses what the response to a watch has.
func (r *ResponsePlan) resume(c *Choices, e *ExchangePlan, attempt int) {
	k := r.Kube
	cut := r.Body.Length < int64(len(k.content(e.stream(attempt)).bytes()))
	k.Gone = c.Bool(6)
	if e.Resumed {
		k.Resumed, k.Listing = true, ListingKind(max(0, c.Int(9)-3))
		for i := range k.Before {
			k.Before[i] = c.Int(3)
		}
	}
	size := int64(len(k.content(e.stream(attempt)).bytes()))
	if r.Body.Length = min(r.Body.Length, size); !cut {
		r.Body.Length = size
	}
	r.Body.Cut = r.Body.Cut && r.Body.Length > 0
	r.Body.CutAt = min(r.Body.CutAt, max(0, r.Body.Length-1))
}

// begin returns the objects that exist at resumedVersion.
func (k *KubeContent) begin() (list []kubeEvent) {
	for name, state := range k.Before {
		if k.Resumed && state > 0 {
			list = append(list, kubeEvent{kind: "ADDED", name: name, version: name + 1, shown: state > 1, node: "somewhere", note: "kept"})
		}
	}
	return list
}

// at returns the objects in a list of a version.
func (k *kubeContent) at(version int) (list []kubeEvent) {
	now := map[int]kubeEvent{}
	for _, e := range k.before {
		now[e.name] = e
	}
	for _, e := range k.events {
		switch {
		case e.version > version || e.kind == "BOOKMARK" || e.kind == "ERROR":
		case e.kind == "DELETED":
			delete(now, e.name)
		default:
			now[e.name] = e
		}
	}
	for name := range kubeNames {
		if e, ok := now[name]; ok {
			list = append(list, e)
		}
	}
	return list
}

// kubeNames is how many names objects of a watch have.
const kubeNames = 3

// tooOld is the Status of a watch that the server ends.
var tooOld = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
	Message: "too old resource version", Reason: metav1.StatusReasonExpired, Code: http.StatusGone}

// listedFor returns the token of the watch for which a filter lists objects, 0 for none.
func listedFor(path string) uint32 {
	digits, ok := strings.CutPrefix(path, listedPath)
	if !ok {
		return 0
	}
	digits, _, _ = strings.Cut(digits, "/")
	n, _ := strconv.ParseUint(digits, 10, 32)
	return uint32(n)
}

// lastSeen returns which attempt of a request was the last one of whose response the gateway has read something, or the last
// one where that is not known; -1 if there was none. A request that the gateway has given up may arrive behind the next attempt.
func (j *Journal) lastSeen(token uint32) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	sights := j.sights[token]
	for k, s := range slices.Backward(sights) {
		if s.Wrote && s.Response.out != nil && s.Response.seen() {
			return k
		}
	}
	return len(sights) - 1
}

// noteListed notes that a target has sent all of a list for a watch.
func (j *Journal) noteListed(token uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.listed[token]++
}

// listing gives a list that a filter requests for a watch a passage of its own, since it has a lease of its own.
func (g *gateway) listing(r *http.Request) *http.Request {
	if listedFor(r.URL.Path) == 0 {
		return r
	}
	p := &Passage{Method: r.Method, Lists: listedFor(r.URL.Path), Entered: g.journal.now()}
	g.journal.mu.Lock()
	defer g.journal.mu.Unlock()
	g.journal.passages = append(g.journal.passages, p)
	return r.WithContext(context.WithValue(r.Context(), passageKey{}, p))
}

// resumedTarget is the request target of a watch that continues.
func (e *ExchangePlan) resumedTarget() string {
	return fmt.Sprintf("%s%d/carps?%s", resumedPath, e.Token, url.Values{"resourceVersion": {fmt.Sprint(resumedVersion)}}.Encode())
}

// expired: a resumed watch ends with 410 only if the list that it needs can't be had.
func (r *ruler) expired() {
	if !r.e.Resumed || !r.o.Collected || r.o.Attempt < 0 {
		return
	}
	m := r.w.passage(r.e, r.client.Kind).response(r.o.Attempt)
	if m.settled == nil {
		return
	}
	plain, _ := decoded(r.o.Header.Get("Content-Encoding"), r.o.Raw)
	whole := r.o.Whole && !r.o.ByClose
	if m.settled.match(plain, whole) == nil {
		return
	}
	r.w.journal.effects.Add("watchcodec: 410 for a watch that continues", 1)
	if late := r.e.response(r.o.Attempt).Kube.Listing == ListingSlow; late && r.w.plan.Gateway.HeaderTimeout > 0 && r.w.plan.Gateway.HeaderTimeout < time.Minute {
		return
	}
	if r.w.journal.listed[r.e.Token] > 0 && !r.faulty() && !r.slow() && len(r.w.plan.Gateway.Filters) == 1 && !r.timed() && r.e.GiveUp == 0 {
		r.fail("expired", "the watch ended with 410, though the list was received")
	}
}

// listingMayFail reports whether the target may fail with a list that a filter requests for the watch: it is counted for the
// target's health, while the watch itself has its response.
func (e *ExchangePlan) listingMayFail(g *GatewayPlan) bool {
	for i := range e.Responses {
		k := e.Responses[i].Kube
		switch {
		case !e.Resumed || k == nil:
		case k.Listing == ListingNever, k.Listing == ListingShort, k.Listing == ListingSlow && 2*listingPause >= g.shortest():
			return true
		}
	}
	return false
}
