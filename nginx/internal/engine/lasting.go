package engine

// lasting is what a configuration hands on to the one that replaces it: the process's, and not
// the file's.
type lasting struct {
	requestZones map[string]*requestZone
	connZones    map[string]*zone[*running]
	counts       *counts
}

// lastingFrom makes a configuration's own. Its zones are taken over one by one, as far as they
// are the same; what runs under the one before is counted on.
func lastingFrom(before lasting) lasting {
	counted := before.counts
	if counted == nil {
		counted = newCounts()
	}
	return lasting{requestZones: map[string]*requestZone{}, connZones: map[string]*zone[*running]{}, counts: counted}
}
