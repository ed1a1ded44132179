package errs

// EndedUnused reports whether err is that of net/http's transport for a connection of HTTP/2 which had ended before it carried any
// request: nothing of this one was sent. Only its text distinguishes it.
func EndedUnused(err error) bool {
	return err != nil && err.Error() == "http2: client conn could not be established"
}
