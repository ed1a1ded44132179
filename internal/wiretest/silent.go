package wiretest

import (
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// NotAccepted sends requests to h for a client that then accepts nothing of a response, and fails the test if h is
// running, or the connection is there, an hour later. It is called in a bubble of testing/synctest.
func NotAccepted(t testing.TB, h http.Handler, requests string) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	var entered, left atomic.Int32
	s := Server(&http.Server{ErrorLog: Quiet(), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered.Add(1)
		defer left.Add(1)
		h.ServeHTTP(w, r)
	})})
	defer s.Close()
	_ = s.Serve(OneConn(far)) // the connection is served on
	if _, err := io.WriteString(near, requests); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour)
	if left.Load() != entered.Load() {
		t.Error("the handler is still running")
	}
	_ = near.SetReadDeadline(time.Now().Add(time.Second))
	if got, err := io.ReadAll(near); err != nil || len(got) > 0 {
		t.Errorf("the connection is still there: %d bytes, %v", len(got), err)
	}
}
