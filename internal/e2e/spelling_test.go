package e2e

import (
	"net/textproto"
	"slices"
)

// alignNames leaves of the names those of fields that both servers send the same values in: the names' case and order are
// compared where the fields are the same.
func alignNames(nginx, culvert *seen) {
	for i := range min(len(nginx.Responses), len(culvert.Responses)) {
		n, c := &nginx.Responses[i], &culvert.Responses[i]
		n.Names, c.Names = common(n.Names, c.Names, n.Fields, c.Fields)
	}
	for name, requests := range nginx.Upstream {
		for i := range min(len(requests), len(culvert.Upstream[name])) {
			n, c := &requests[i], &culvert.Upstream[name][i]
			n.Names, c.Names = common(n.Names, c.Names, n.Fields, c.Fields)
		}
	}
}

func common(a, b []string, fieldsA, fieldsB map[string][]string) (_, _ []string) {
	if a == nil || b == nil {
		return nil, nil
	}
	other := func(name string) bool {
		key := textproto.CanonicalMIMEHeaderKey(name)
		return fieldsA[key] == nil || !slices.Equal(fieldsA[key], fieldsB[key])
	}
	return slices.DeleteFunc(a, other), slices.DeleteFunc(b, other)
}
