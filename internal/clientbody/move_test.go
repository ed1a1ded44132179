package clientbody_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/internal/clientbody"
	"github.com/culvert-go/culvert/internal/clientside"
)

// source is a server's body. Its Move waits for the client, and then for the target.
type source struct {
	*client
	target chan bool // receives whether the body has ended
}

func (s source) Move(_ clientbody.Taker, most int64, begin func() bool) (n int64, ended bool, err error) {
	if _, err := s.client.Read(make([]byte, 1)); err != nil || !begin() {
		return 0, false, nil
	}
	return most, <-s.target, nil
}

// moving returns a body that is being moved, and what Move returns.
func moving(t *testing.T, timeout time.Duration) (b *clientbody.Body, s source, moved <-chan int64) {
	s = source{newClient(), make(chan bool)}
	b = new(clientbody.Body)
	r := (&http.Request{Body: s, ProtoMajor: 1, ProtoMinor: 1}).WithContext(t.Context())
	b.Start(clientside.New(s.client, r), r, timeout)
	c := make(chan int64, 1)
	go func() {
		n, _, err := b.Move(nil, 5, func() bool { return true })
		if err != nil {
			t.Error(err)
		}
		c <- n
	}()
	return b, s, c
}

// The client has its time for what is moved, and the target takes as long as it likes.
func TestMoveWaitsForBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, moved := moving(t, time.Minute)
		time.Sleep(30 * time.Second)
		if !b.Awaited() {
			t.Error("the client is not waited for")
		}
		s.send <- []byte("x")
		time.Sleep(time.Hour)
		if b.Awaited() || b.Overdue() {
			t.Errorf("the client is waited for: %v, overdue: %v", b.Awaited(), b.Overdue())
		}
		s.target <- false
		if n := <-moved; n != 5 {
			t.Errorf("moved %d", n)
		}
		go func() { s.send <- []byte("y") }()
		if n, err := b.Read(make([]byte, 5)); n != 1 || err != nil {
			t.Errorf("read %d, %v", n, err)
		}
		b.Finish()
	})
}

// A move that has waited too long for the client leaves its failure to the next read.
func TestMoveOfASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, moved := moving(t, time.Minute)
		if n := <-moved; n != 0 {
			t.Errorf("moved %d", n)
		}
		if _, err := b.Read(make([]byte, 5)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		b.Finish()
	})
}

// A request whose time is over is not that of a slow client if its target is waited for, and nothing more of it is read.
func TestMoveIsInterrupted(t *testing.T) {
	for name, sends := range map[string]bool{"waiting for the client": false, "waiting for the target": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s, moved := moving(t, 0)
				if sends {
					s.send <- []byte("x")
				}
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				b.Interrupt(cancel)
				if ctx.Err() == nil || b.Awaited() == sends {
					t.Errorf("context: %v, the client is awaited: %v", ctx.Err(), b.Awaited())
				}
				if sends {
					if !s.deadline.IsZero() { // of the read at which what was received is moved
						t.Errorf("the client's deadline is %v", s.deadline)
					}
					s.target <- false
				}
				if n := <-moved; (n > 0) != sends {
					t.Errorf("moved %d", n)
				}
				if _, err := b.Read(make([]byte, 5)); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("read: %v", err)
				}
				b.Finish()
			})
		})
	}
}

// Behind the last bytes that were moved the body has ended.
func TestMoveToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, moved := moving(t, time.Minute)
		s.send <- []byte("x")
		s.target <- true
		<-moved
		if _, err := b.Read(make([]byte, 5)); err != io.EOF || !b.Ended() {
			t.Errorf("read: %v, ended: %v", err, b.Ended())
		}
		b.Finish()
		if n, ended, err := b.Move(nil, 5, nil); n != 0 || ended || err != nil {
			t.Errorf("moved %d behind the end: %v, %v", n, ended, err)
		}
	})
}
