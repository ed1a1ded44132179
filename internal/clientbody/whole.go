package clientbody

import (
	"io"
	"net/http"
)

// Whole is a request's body that was read to its end, in the place of the client's.
type Whole struct {
	io.Reader        // of Content
	Content   []byte // is not changed
}

// Close does nothing: the server ends the body that it has made.
func (Whole) Close() error { return nil }

// Remains reports whether r has a body that is not known to have been read to its end.
func Remains(r *http.Request) bool {
	_, whole := r.Body.(Whole)
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody && !whole
}

// DeclaredEmpty reports whether r came over HTTP/2 and has declared that its content is empty, which its stream may still
// disprove: net/http's server passes r on before the stream has ended, and a read of the body may wait for the client.
func DeclaredEmpty(r *http.Request) bool {
	return r.ProtoMajor >= 2 && r.ContentLength == 0 && len(r.Header["Content-Length"]) > 0 && r.Body != nil && r.Body != http.NoBody
}

// Reopener is a request's body that can be read again when a transport has closed it, where it has read none of it.
type Reopener interface {
	// Reopen makes the body readable again, and reports whether it is still at its beginning.
	Reopen() bool
}

// Broken is a request's body of which a part was read before it failed with Err.
type Broken struct{ Err error }

// Read returns Err.
func (b Broken) Read([]byte) (int, error) { return 0, b.Err }

// Close does nothing: the server ends the body that it has made.
func (Broken) Close() error { return nil }
