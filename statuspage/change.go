package statuspage

import (
	"net/http"
	"strconv"

	"github.com/culvert-go/culvert/wsupgrade"
)

// maxForm bounds the body of a change, in bytes.
const maxForm = 8 << 10

var sameOrigin http.CrossOriginProtection

// change drains a target, puts one back, or closes a tunnel. Its fields are those of the page's forms: do, and group,
// scheme and target, or tunnel.
func (p *Page) change(w http.ResponseWriter, r *http.Request) {
	if err := sameOrigin.Check(r); err != nil || !p.authorized(r) {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form can't be read", http.StatusBadRequest)
		return
	}
	found := false
	switch do := r.PostForm.Get("do"); do {
	case "drain", "undrain":
		found = p.setDrained(r.PostForm.Get("group"), r.PostForm.Get("scheme"), r.PostForm.Get("target"), do == "drain")
	case "close":
		found = p.closeTunnel(r.PostForm.Get("tunnel"))
	default:
		http.Error(w, "do must be drain, undrain or close", http.StatusBadRequest)
		return
	}
	if !found {
		http.Error(w, "it is not there any more", http.StatusNotFound)
		return
	}
	p.mu.Lock()
	p.last = view{}
	p.mu.Unlock()
	w.Header().Set("Location", "?") // of this path, which a filter may have changed in r
	w.WriteHeader(http.StatusSeeOther)
}

// setDrained reports whether a group has the target.
func (p *Page) setDrained(group, scheme, target string, drained bool) (found bool) {
	for g := range p.o.Groups {
		d, ok := g.(drainer)
		if ok && g.Name() == group && g.Scheme() == scheme && d.SetDrained(target, drained) == nil {
			found = true
		}
	}
	return found
}

// closeTunnel reports whether there is a tunnel with the id.
func (p *Page) closeTunnel(id string) bool {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || p.o.Tunnels == nil {
		return false
	}
	t := p.o.Tunnels.Get(n)
	if t == nil {
		return false
	}
	t.Close(wsupgrade.GoingAway, "closed by an operator")
	return true
}
