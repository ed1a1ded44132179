package simulate

import (
	"fmt"
	"slices"
)

// KubeVerb is the verb of a request to a Kubernetes API server.
type KubeVerb int

const (
	// KubeNothing: the request is not for Kubernetes.
	KubeNothing KubeVerb = iota
	// KubeList lists objects.
	KubeList
	// KubeWatch watches them.
	KubeWatch
	// KubeObject reads or writes one object.
	KubeObject
)

// kubePath is the prefix of the paths of Kubernetes requests. The token is the namespace.
const kubePath = "/apis/testapigroup.apimachinery.k8s.io/v1/namespaces/"

// kubeTarget is the request target of a request of Kubernetes.
func (e *ExchangePlan) kubeTarget() string {
	path := fmt.Sprintf("%s%d/carps", kubePath, e.Token)
	switch {
	case e.Resumed:
		return e.resumedTarget()
	case e.Kube == KubeWatch:
		return path + "?watch=1"
	case e.Kube == KubeObject && e.Method != "POST":
		return path + "/n1"
	}
	return path
}

// kubeAccepts are the Accept fields of clients, and the Accept field that the gateway sends to get a form that can be
// edited (watchcodec.Negotiate); "" means that it refuses the request.
var kubeAccepts = map[string]string{
	"":                 kubeJSON,
	"*/*":              kubeJSON,
	kubeJSON:           kubeJSON,
	kubeProto:          kubeProto,
	kubeProtoOrJSON:    kubeProtoOrJSON,
	kubeTableOrJSON:    kubeJSON,
	"text/html":        "",
	kubeJSONLikedLess:  kubeProtoOrJSON,
	"application/yaml": "",
}

const (
	kubeJSON          = "application/json"
	kubeProto         = "application/vnd.kubernetes.protobuf"
	kubeProtoOrJSON   = kubeProto + ", " + kubeJSON
	kubeTableOrJSON   = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"
	kubeJSONLikedLess = "application/json;q=0.5, " + kubeProto
)

// KubeContent is what a response of Kubernetes is made of.
type KubeContent struct {
	Verb   KubeVerb
	Proto  bool
	Events []int // what each is made of
	Table  bool  // it is a Table, or one an event
	Gone   bool  // the server ends the watch with an ERROR event

	Resumed bool           // the watch continues from resumedVersion
	Before  [kubeNames]int // the objects there are then: none, hidden, shown
	Listing ListingKind    // the response to the list of them
}

// addKube chooses histories with clients of Kubernetes, and filters of their lists and watches in the chain.
func (p *Plan) addKube(c *Choices) {
	if !c.Bool(6) {
		return
	}
	p.Gateway.Filters = p.Gateway.Filters[:min(len(p.Gateway.Filters), 3)] // few responses pass more
	kind := slices.IndexFunc(filterKinds, func(k filterKind) bool { return k.name == kubeKind.name })
	for range 1 + c.Int(2) {
		f := FilterPlan{Kind: kind, A: c.Int(filterOptions), B: c.Int(filterOptions)}
		p.Gateway.Filters = slices.Insert(p.Gateway.Filters, c.Int(len(p.Gateway.Filters)+1), f)
	}
	for i := range p.Clients {
		client := &p.Clients[i]
		for k := range client.Requests {
			if !client.Kind.upgrades() && client.Kind != Malformed && c.Int(4) > 0 {
				client.Requests[k].beKube(c)
			}
		}
	}
}

// beKube makes a request one of Kubernetes.
func (e *ExchangePlan) beKube(c *Choices) {
	e.Kube = KubeVerb(1 + c.Int(3))
	switch {
	case (e.Method == "PUT" || e.Method == "POST") && e.hasBody():
		e.Kube = KubeObject
	default:
		e.Method = Pick(c, "GET", "GET", "GET", "HEAD")
		e.Body, e.Coding, e.Trailer, e.Expect, e.Forbidden = BodyPlan{}, "", nil, false, ""
	}
	e.Path, e.Query, e.Slashes = "", "", false
	e.Wants = Pick(c, "", kubeJSON, kubeProto, kubeProtoOrJSON, "*/*", kubeTableOrJSON, kubeJSONLikedLess, "text/html")
	for i := range e.Responses {
		e.Responses[i].beKube(c, e, i)
	}
}

// beKube makes a response one of Kubernetes. Few fail: the handling of failures does not depend on the verb.
func (r *ResponsePlan) beKube(c *Choices, e *ExchangePlan, attempt int) {
	if c.Int(4) > 0 {
		r.Status = 200
	}
	k := &KubeContent{Verb: e.Kube, Proto: c.Bool(2)}
	for range c.Int(14) {
		k.Events = append(k.Events, c.Int(64))
	}
	r.Kube, r.Odd, r.OddFrames, r.Half, r.Trailer, r.Forget, r.Forbidden, r.Apart = k, 0, 0, false, nil, false, "", false
	if r.Framing == ByClose {
		r.Framing = ByLength
	}
	r.Body.Chunked = r.Framing == Chunked
	r.Coding = Pick(c, "", "", "", "gzip", "zstd")
	switch {
	case k.Proto && k.Verb == KubeWatch:
		r.Media = MediaKubeStream
	case k.Proto:
		r.Media = MediaKubeProto
	default:
		r.Media = MediaKubeJSON
	}
	size := int64(len(k.content(e.stream(attempt)).bytes()))
	if r.Body.Length = size; c.Bool(8) {
		r.Body.Length = size * int64(1+c.Int(7)) / 8
	}
	r.Body.CutAt = min(r.Body.CutAt, max(0, r.Body.Length-1))
	r.Body.Cut = r.Body.Cut && r.Body.Length > 0
	if r.Body.Piece > 0 {
		r.Body.Piece = max(r.Body.Piece, int(r.Body.Length/100))
	}
}
