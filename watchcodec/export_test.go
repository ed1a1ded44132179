package watchcodec

// What follows is exported for the tests of this package.
var (
	NewResumedVisibility = newResumedVisibility
	ErrUnknownState      = errUnknownState
)
