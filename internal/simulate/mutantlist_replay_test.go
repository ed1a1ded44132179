package simulate

func init() { mutants = append(mutants, mutantsOfReplay...) }

// mutantsOfReplay are faults of the body that an exchange's attempts share.
var mutantsOfReplay = []mutant{
	{"what was read for an attempt that has ended is lost", "internal/replay/source.go", "		b.readAhead = bytes.Clone(p[:n])\n", "		_ = bytes.Clone(p[:n])\n"},
	{"what was read ahead is sent twice", "internal/replay/source.go", "	b.readAhead = b.readAhead[n:]\n", ""},
	{"a client that leaves is not noticed behind a refused body", "internal/replay/rest.go", "	if b.client.Unwatched() {\n", "	if false {\n"},
	{"content behind a declared length is forwarded", "internal/replay/length.go", "		if err = AwaitEnd(b.reader); err == nil {\n", "		if err = nil; err == nil {\n"},
}
