package source

import "time"

// RetryAfter is exported for the tests of this package.
func RetryAfter(e *RefusedError) time.Duration { return e.retryAfter() }
