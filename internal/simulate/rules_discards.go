package simulate

// discarded: where a filter discards a response's content from its header on, the gateway does not wait for that content
// (filters.ErrorPages): a target that pauses, or falls silent, delays nothing. Excepted are responses of Kubernetes of which an
// inner filter makes another one when it has read their content.
func (t *times) discarded() {
	n := len(t.p.Attempts) - 1
	if n < 0 || t.p.Upgrade || t.p.Body || t.e.Kube != KubeNothing && t.w.plan.has("watchcodec") || !t.w.smooth(t.p.Token) {
		return
	}
	a, s := &t.p.Attempts[n], t.w.journal.sightOf(t.p, n)
	if s == nil || a.TimeToHeader == 0 || !t.w.passage(t.e, t.w.clientOf(t.p.Token).Kind).response(s.Attempt).discards {
		return
	}
	t.w.journal.effects.Add("content that is discarded", 1)
	if took := a.Total - a.TimeToHeader; took > promptly {
		t.fail(a.Ended, "%s has had the gateway wait for %v for content that a filter discards", a.Target, took)
	}
}
