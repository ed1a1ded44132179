package simulate

import (
	"net/http"
	"strings"

	"github.com/culvert-go/culvert/upstream"
)

// addBases chooses histories whose targets are URLs with base paths (upstream.Target.Path), most often with different ones.
func (p *Plan) addBases(c *Choices) {
	if !c.Bool(6) {
		return
	}
	for i := range p.Targets {
		p.Targets[i].Base = Pick(c, "/base", "", "/a%2Fb/%7e", "/0", "/1/", "/%E2%82%AC;v=1//x", "/same")
	}
}

// based gives a target the base path of its plan, as a URL names it.
func (p *TargetPlan) based(t upstream.Target) upstream.Target {
	if p.Base == "" {
		return t
	}
	named, err := upstream.ParseTarget("http://" + p.Addr + p.Base)
	if err != nil || named.Addr != p.Addr {
		panic(err) // the plan's bases are valid
	}
	t.Scheme, t.Path = named.Scheme, named.Path
	return t
}

// based checks that the path of a request begins with the target's base path, and removes it: the rest is the path as the
// client has sent it, which other rules compare byte for byte. A slash at the end of a base counts as none. Checks have the
// path of upstream.Check alone.
func (t *target) based(req *http.Request) bool {
	if t.plan.Base == "" {
		return true
	}
	if req.Header.Get(checkField) != "" {
		if req.RequestURI != checkPath {
			t.world.journal.Break("base path", "%s got a check of %q, Check.Path is %q", t.plan.Addr, req.RequestURI, checkPath)
		}
		return true
	}
	rest, ok := strings.CutPrefix(req.RequestURI, strings.TrimSuffix(t.plan.Base, "/"))
	if !ok || !strings.HasPrefix(rest, "/") {
		t.world.journal.Break("base path", "%s got a request for %q, its base path is %q", t.plan.Addr, req.RequestURI, t.plan.Base)
		return false
	}
	t.world.journal.manners.Add("target: a request behind a base path", 1)
	req.RequestURI = rest
	if req.URL != nil {
		req.URL.Path = strings.TrimPrefix(req.URL.Path, unescaped(t.plan.Base))
	}
	return true
}

// unescaped returns a base path as http.ReadRequest has it in URL.Path.
func unescaped(base string) string {
	req, err := http.NewRequest(http.MethodGet, "http://target"+strings.TrimSuffix(base, "/"), nil)
	if err != nil {
		panic(err)
	}
	return req.URL.Path
}
