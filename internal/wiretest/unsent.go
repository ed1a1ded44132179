package wiretest

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Unsent sends h the header of a request for a client that then sends nothing of its body, and fails the test if the server
// has not closed the connection a minute later. It returns the response, "" for none. It is called in a bubble of
// testing/synctest.
func Unsent(t testing.TB, h http.Handler, header string) (response string) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	s := Server(&http.Server{Handler: h, ErrorLog: Quiet()})
	defer s.Close()
	_ = s.Serve(OneConn(far)) // the connection is served on
	_ = near.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(near, header); err != nil {
		t.Fatal(err)
	}
	sent, err := io.ReadAll(near)
	if err != nil {
		t.Errorf("the connection is still there, behind %q: %v", sent, err)
	}
	return string(sent)
}
