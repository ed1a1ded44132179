package choices

// Shrink returns a shorter and simpler list of choices for which fails still holds. It
// tries at most budget lists.
func Shrink(list []uint32, budget int, fails func([]uint32) bool) []uint32 {
	try := func(candidate []uint32) bool {
		if budget <= 0 {
			return false
		}
		budget--
		if !fails(candidate) {
			return false
		}
		list = candidate
		return true
	}
	for improved := true; improved && budget > 0; {
		improved = dropRuns(&list, try)
		improved = zeroRuns(&list, try) || improved
		improved = lower(&list, try) || improved
	}
	return list
}

// dropRuns leaves runs of choices out.
func dropRuns(list *[]uint32, try func([]uint32) bool) (improved bool) {
	for size := len(*list) / 2; size > 0; size /= 2 {
		for at := len(*list) - size; at >= 0; at -= size {
			if at+size > len(*list) {
				continue
			}
			candidate := append(append([]uint32(nil), (*list)[:at]...), (*list)[at+size:]...)
			improved = try(candidate) || improved
		}
	}
	return improved
}

// zeroRuns chooses the simplest alternative for runs of choices.
func zeroRuns(list *[]uint32, try func([]uint32) bool) (improved bool) {
	for size := max(1, len(*list)/4); size > 0; size /= 2 {
		for at := 0; at+size <= len(*list); at += size {
			candidate := append([]uint32(nil), *list...)
			clear(candidate[at : at+size])
			if same(candidate, *list) {
				continue
			}
			improved = try(candidate) || improved
		}
	}
	return improved
}

// lower halves choices.
func lower(list *[]uint32, try func([]uint32) bool) (improved bool) {
	for at := range *list {
		for at < len(*list) && (*list)[at] > 0 {
			candidate := append([]uint32(nil), *list...)
			candidate[at] /= 2
			if !try(candidate) {
				break
			}
			improved = true
		}
	}
	return improved
}

// same reports whether two lists of one length are equal.
func same(a, b []uint32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
