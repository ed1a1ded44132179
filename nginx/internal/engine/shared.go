package engine

// shared is the state that a configuration hands over to the one that replaces it: it belongs to
// the process and not to the file.
type shared struct {
	requestZones map[string]*requestZone
	connZones    map[string]*zone[*running]
	counts       *counts
}

// sharedFrom returns a configuration's own shared state. Its zones are taken over one by one, if
// they are the same; requests of the configuration before are still counted.
func sharedFrom(before shared) shared {
	counted := before.counts
	if counted == nil {
		counted = newCounts()
	}
	return shared{requestZones: map[string]*requestZone{}, connZones: map[string]*zone[*running]{}, counts: counted}
}
