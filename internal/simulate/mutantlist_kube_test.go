package simulate

func init() { mutants = append(mutants, mutantsOfKube...) }

// mutantsOfKube are faults that watches of Kubernetes find which continue from a resourceVersion, and Tables.
var mutantsOfKube = []mutant{
	{"what the client has seen before is not looked up", "watchcodec/visible.go", "	if !visible && e.Type == Modified {\n", "	if false {\n"},
	{"what the client has seen before is one page", "watchcodec/resumed.go", "		if more == \"\" {\n", "		if true {\n"},
	{"a client that may have missed something gets no 410", "watchcodec/watchwriter.go", "	if errors.Is(err, errUnknownState) {\n", "	if failed == nil {\n"},
	{"a list for a watch is recorded as an attempt of the watch", "watchcodec/resumed.go", "		own, _ := record.WithNew(ctx)\n", "		own := ctx\n		_ = record.WithNew\n"},
	{"a hidden row of a Table keeps its cells", "watchcodec/table.go", "	r.raw, r.hidden = []byte(text), true\n", "	r.hidden = len(text) > 0\n"},
	{"the columns of a Table are lost with an event that is hidden", "watchcodec/table.go", "			t.columns = append([]byte(nil), at.Of(o.raw)...)\n", "			t.columns = nil\n"},
}
