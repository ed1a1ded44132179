package demo

import (
	"bytes"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// arrivals is a response whose client is on a busy machine: it notices each event long after it was sent, and reports it
// then.
type arrivals struct {
	*httptest.ResponseRecorder
	cluster *cluster
	delay   time.Duration
	sent    []time.Duration
	start   time.Time
}

func (a *arrivals) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"type":`)) {
		a.sent = append(a.sent, time.Since(a.start))
		time.AfterFunc(a.delay, func() { a.cluster.saw("busy") })
	}
	return len(p), nil
}

func (a *arrivals) Flush() {}

// An event is sent when the one before was seen, even if that takes a machine half a minute.
func TestWatchWaitsForABusyClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		a := &arrivals{ResponseRecorder: httptest.NewRecorder(), cluster: c, delay: 29 * time.Second, start: time.Now()}
		c.ServeHTTP(a, httptest.NewRequest("GET", "/?watch=1&step=busy", nil))
		for i, at := range a.sent {
			if want := time.Duration(i) * a.delay; at != want {
				t.Errorf("event %d was sent after %v, want %v", i, at, want)
			}
		}
		if len(a.sent) != 6 {
			t.Errorf("%d events were sent", len(a.sent))
		}
	})
}

// A client that reports nothing gets the events all the same: something holds them back on the way.
func TestWatchEndsWithoutReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		a := &arrivals{ResponseRecorder: httptest.NewRecorder(), cluster: c, delay: time.Hour, start: time.Now()}
		c.ServeHTTP(a, httptest.NewRequest("GET", "/?watch=1&step=silent", nil))
		if len(a.sent) != 6 || time.Since(a.start) > time.Minute {
			t.Errorf("%d events were sent within %v", len(a.sent), time.Since(a.start))
		}
		time.Sleep(time.Hour) // the reports, for a watch that has ended
	})
}
