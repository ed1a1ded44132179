// Package bound gives the times in options their one meaning, which package culvert documents: 0 is
// the default and a negative value no bound.
package bound

import "time"

// None is a time that never passes. It can be added to a time of this century, and to itself,
// without overflow.
const None time.Duration = 100 * 365 * 24 * time.Hour

// OrDefault returns d, standard if d is 0, and None if d is negative.
func OrDefault(d, standard time.Duration) time.Duration {
	switch {
	case d == 0:
		return standard
	case d < 0:
		return None
	}
	return d
}
