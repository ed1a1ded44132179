package watchcodec_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/watchcodec"
)

// With a negative BookmarkEvery a client receives its frames and no bookmarks.
func TestNoBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout(t, watchcodec.FanoutOptions{})
		f.Send([]byte("a\n"))
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		w := httptest.NewRecorder()
		f.Follow(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx), watchcodec.FollowOptions{
			BookmarkEvery: -1, Bookmark: func(version uint64) []byte { return fmt.Appendf(nil, "bookmark %d\n", version) },
		})
		if got := w.Body.String(); got != "a\n" {
			t.Errorf("received %q", got)
		}
	})
}

// deadlined is a client that takes a day for each write, unless a deadline passes.
type deadlined struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (d *deadlined) SetWriteDeadline(t time.Time) error {
	d.deadline = t
	return nil
}

func (d *deadlined) Write(p []byte) (int, error) {
	if time.Sleep(24 * time.Hour); !d.deadline.IsZero() && time.Now().After(d.deadline) {
		return 0, http.ErrHandlerTimeout
	}
	return d.ResponseRecorder.Write(p)
}

// With a negative WriteTimeout a client may take a day for each frame.
func TestNoWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fanout(t, watchcodec.FanoutOptions{WriteTimeout: -1})
		f.Send([]byte("a\n"))
		f.Send([]byte("b\n"))
		f.Close()
		w := &deadlined{ResponseRecorder: httptest.NewRecorder()}
		f.Follow(w, httptest.NewRequest("GET", "/", nil), watchcodec.FollowOptions{})
		if got := w.Body.String(); got != "a\nb\n" {
			t.Errorf("received %q", got)
		}
	})
}
