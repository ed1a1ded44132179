package replay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/clientside"
	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/spool"
)

// start returns the Body of a request of which the test is the client: it writes what is sent. It ends with the test.
func start(t *testing.T, o Options, header http.Header) (*Body, *io.PipeWriter) {
	t.Helper()
	body, client := io.Pipe()
	in := (&http.Request{Method: "POST", Header: header, Body: body, ContentLength: -1, ProtoMajor: 2}).WithContext(t.Context())
	b := new(Body)
	if _, err := b.Start(clientside.New(httptest.NewRecorder(), in), in, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		b.Finish()
	})
	return b, client
}

// attempt returns an attempt that has begun.
func attempt(ctx context.Context, b *Body) *Attempt {
	a := new(Attempt)
	a.Start(b)
	a.Attach(ctx, &http.Request{Header: http.Header{}, ContentLength: -1}, nil)
	return a
}

type read struct {
	text string
	err  error
}

// readOn reads once, on a goroutine, up to n bytes.
func readOn(a io.Reader, n int) <-chan read {
	ended := make(chan read, 1)
	go func() {
		p := make([]byte, n)
		n, err := a.Read(p)
		ended <- read{string(p[:n]), err}
	}()
	return ended
}

func check(t *testing.T, what string, ended <-chan read, want read) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-ended:
		if got.text != want.text || !errors.Is(got.err, want.err) {
			t.Errorf("%s: %q, %v; want %q, %v", what, got.text, got.err, want.text, want.err)
		}
	default:
		t.Errorf("%s: has not ended", what)
	}
}

func waiting(t *testing.T, what string, ended <-chan read) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-ended:
		t.Errorf("%s: has ended with %q, %v", what, got.text, got.err)
	default:
	}
}

func send(t *testing.T, client io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(client, text); err != nil {
		t.Fatal(err)
	}
}

// What was kept is sent again while the read of an attempt that has ended still waits, and what that one reads then is the
// next attempt's.
func TestNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, client := start(t, Options{Keep: 8}, nil)
		first := attempt(t.Context(), b)
		ended := readOn(first, 8)
		send(t, client, "abc")
		check(t, "the first read", ended, read{"abc", nil})
		left := readOn(first, 8)
		synctest.Wait()
		first.Finish()

		second := attempt(t.Context(), b)
		check(t, "what was kept", readOn(second, 2), read{"ab", nil})
		check(t, "its rest", readOn(second, 8), read{"c", nil})
		ended = readOn(second, 2)
		waiting(t, "a read behind what was kept", ended)
		send(t, client, "defg")
		check(t, "the read of the first attempt", left, read{"", errEnded})
		check(t, "that of the second", ended, read{"de", nil})
		check(t, "the rest of what was read ahead", readOn(second, 8), read{"fg", nil})
		if !b.Replayable() || first.Sent() != 3 || second.Sent() != 7 {
			t.Errorf("replayable %v, sent %d and %d", b.Replayable(), first.Sent(), second.Sent())
		}
		if check(t, "another read of the first", readOn(first, 8), read{"", errEnded}); second.AwaitsClient() {
			t.Error("the client is awaited")
		}
	})
}

// What is longer than is kept can't be sent again.
func TestTruncated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, client := start(t, Options{Keep: 4}, nil)
		first := attempt(t.Context(), b)
		for _, piece := range []string{"abc", "de"} {
			ended := readOn(first, 8)
			send(t, client, piece)
			check(t, piece, ended, read{piece, nil})
		}
		first.Finish()
		if b.Replayable() {
			t.Error("replayable")
		}
		check(t, "a second attempt", readOn(attempt(t.Context(), b), 8), read{"", errBodyLost})
	})
}

// An attempt that is paused is given nothing; when it continues it gets what was read meanwhile, and when it ends the next one
// does.
func TestPause(t *testing.T) {
	for name, continues := range map[string]bool{"continues": true, "ends": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, client := start(t, Options{Keep: 8}, nil)
				first := attempt(t.Context(), b)
				ended := readOn(first, 8)
				synctest.Wait()
				first.Pause()
				send(t, client, "abc")
				waiting(t, "a paused read", ended)
				first.Resume(continues)
				if continues {
					check(t, "the read", ended, read{"abc", nil})
					return
				}
				check(t, "the read", ended, read{"", errEnded})
				check(t, "the next attempt", readOn(attempt(t.Context(), b), 8), read{"abc", nil})
			})
		})
	}
}

// What becomes of a read of a body that the client sends only after a 100.
func TestExpect(t *testing.T) {
	type step func(*Attempt)
	bound := func(d time.Duration) step { return func(a *Attempt) { a.BoundHeader(d) } }
	for name, test := range map[string]struct {
		before, during []step
		after          time.Duration // of the read's beginning, when it ends or sends the client a 100
		err            error         // nil: the client is sent a 100
	}{
		"nothing":                      {},
		"withheld":                     {before: []step{(*Attempt).Withheld}},
		"interim response":             {before: []step{(*Attempt).FirstByte, (*Attempt).InterimReceived}},
		"refused, then the end":        {before: []step{(*Attempt).FirstByte, (*Attempt).HeaderReceived}, during: []step{(*Attempt).Finish}, err: http1.ErrNotWanted},
		"refused, its time over":       {before: []step{(*Attempt).FirstByte}, after: time.Hour, err: http1.ErrNotWanted},
		"interim response meanwhile":   {before: []step{(*Attempt).FirstByte}, during: []step{(*Attempt).InterimReceived}},
		"header stalled":               {before: []step{bound(2 * time.Second), (*Attempt).FirstByte}, after: 2 * time.Second, err: errHeaderStalled},
		"header without a bound":       {before: []step{bound(0), (*Attempt).FirstByte}, after: http1.ExpectTimeout},
		"header meanwhile, then ended": {before: []step{bound(2 * time.Second), (*Attempt).FirstByte}, during: []step{(*Attempt).HeaderReceived}, after: time.Hour, err: http1.ErrNotWanted},
		"withheld behind a first byte": {before: []step{(*Attempt).FirstByte, (*Attempt).Withheld}, after: time.Hour, err: http1.ErrNotWanted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, client := start(t, Options{}, http.Header{"Expect": {"100-continue"}})
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				a := attempt(ctx, b)
				for _, step := range test.before {
					step(a)
				}
				began := time.Now()
				ended := readOn(a, 8)
				synctest.Wait()
				for _, step := range test.during {
					step(a)
				}
				if test.err == nil {
					send(t, client, "x")
				}
				got := <-ended
				if took := time.Since(began); took != test.after || !errors.Is(got.err, test.err) {
					t.Errorf("%v after %v, want %v after %v", got.err, took, test.err, test.after)
				}
			})
		})
	}
}

// A target that had no body, since it was given time to refuse it, is not to blame.
func TestWithheldIsNotBlamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, client := start(t, Options{}, http.Header{"Expect": {"100-continue"}})
		blamed := func(a *Attempt) time.Duration { return a.TargetTime(time.Now(), time.Second) }
		a := attempt(t.Context(), b)
		if a.Withheld(); blamed(a) != 0 {
			t.Error("blamed when the body was withheld")
		}
		if a.Finish(); blamed(a) != 0 {
			t.Error("blamed when the attempt has ended")
		}
		if a.FirstByte(); blamed(a) != 0 {
			t.Error("blamed behind a late byte")
		}
		a = attempt(t.Context(), b)
		a.Withheld()
		ended := readOn(a, 8)
		if synctest.Wait(); !a.AwaitsClient() || blamed(a) != 0 {
			t.Error("blamed while the client is awaited")
		}
		send(t, client, "x")
		if <-ended; blamed(a) != time.Second {
			t.Error("not blamed when it has the body")
		}
	})
}

// An attempt over a transport is left though its read waits for the client, whose next bytes are the next attempt's.
func TestLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, client := start(t, Options{Keep: 8}, nil)
		a := attempt(t.Context(), b)
		sending, leavable := a.Leavable(t.Context())
		if !leavable {
			t.Fatal("not leavable")
		}
		ended := readOn(a, 8)
		waiting(t, "the read", ended)
		a.Leave()
		check(t, "the read", ended, read{"", errEnded})
		check(t, "another one", readOn(a, 8), read{"", errEnded})
		if sending.Err() == nil {
			t.Error("the request continues")
		}
		a.Finish()
		send(t, client, "abc")
		check(t, "the next attempt", readOn(attempt(t.Context(), b), 8), read{"abc", nil})
	})
}

// A transport that closes the body in a read has so long to return; one that was given nothing may read again.
func TestClose(t *testing.T) {
	for name, test := range map[string]struct {
		before func(*Attempt)
		after  time.Duration // of Close, when the attempt is left; 0: it is not
	}{
		"before a response":  {(*Attempt).Connected, noticeTime},
		"behind a response":  {func(a *Attempt) { a.Connected(); a.FirstByte() }, returnTime},
		"without a trace":    {func(*Attempt) {}, returnTime},
		"that has returned":  {func(a *Attempt) { a.Connected(); a.Returned() }, 0},
		"that was not in it": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := start(t, Options{Keep: 8}, nil)
				a := attempt(t.Context(), b)
				sending, _ := a.Leavable(t.Context())
				defer a.Leave()
				if test.before != nil {
					test.before(a)
					readOn(a, 8)
					synctest.Wait()
				}
				began := time.Now()
				a.Close()
				var left time.Duration
				select {
				case <-sending.Done():
					left = time.Since(began)
				case <-time.After(time.Minute):
				}
				if left != test.after {
					t.Errorf("left after %v, want %v", left, test.after)
				}
				check(t, "a read behind Close", readOn(a, 8), read{"", errEnded})
				if reopened := a.Reopen(); !reopened {
					t.Error("not opened again")
				}
			})
		})
	}
}

// A target that does not accept what it was given ends the attempt; one that does, or has responded, does not.
func TestBoundUpload(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(*Attempt)
		want error
	}{
		"stalled":         {func(*Attempt) {}, ErrStalled},
		"accepted":        {(*Attempt).Accepted, nil},
		"responded":       {(*Attempt).Returned, nil},
		"ended":           {(*Attempt).Finish, nil},
		"reads on":        {func(a *Attempt) { readOn(a, 8) }, nil},
		"closes the body": {func(a *Attempt) { a.Close() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, client := start(t, Options{}, nil)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				a := attempt(ctx, b)
				a.BoundUpload(4*time.Second, cancel)
				ended := readOn(a, 8)
				time.Sleep(time.Minute) // the client's time
				send(t, client, "abc")
				check(t, "the read", ended, read{"abc", nil})
				test.do(a)
				if time.Sleep(5*time.Second - 1); context.Cause(ctx) != nil {
					t.Error("ended too early")
				}
				if time.Sleep(time.Second); context.Cause(ctx) != test.want {
					t.Errorf("ended with %v, want %v", context.Cause(ctx), test.want)
				}
			})
		})
	}
}

// A read that panics on another goroutine fails, and so do those behind it. Finish panics in its place.
func TestPanic(t *testing.T) {
	in := httptest.NewRequest("POST", "/", struct{ io.Reader }{panicking{}})
	b := new(Body)
	if _, err := b.Start(clientside.New(httptest.NewRecorder(), in), in, Options{Keep: 8}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := attempt(t.Context(), b).Read(make([]byte, 8)); err != errPanicked {
			t.Errorf("a read: %v", err)
		}
	}
	if e := b.Fault(b.Failure()); e.Kind != culvert.Internal {
		t.Errorf("kind %v", e.Kind)
	}
	defer func() {
		if v := recover(); v != "no" {
			t.Errorf("Finish has panicked with %v", v)
		}
		b.Finish()
	}()
	b.Finish()
}

type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("no") }

// A body that is buffered is there as a whole: it is sent with its length, and without Expect.
func TestBuffered(t *testing.T) {
	body := strings.Repeat("x", 100)
	in := httptest.NewRequest("POST", "/", strings.NewReader(body))
	in.ContentLength = -1
	b := new(Body)
	defer b.Finish()
	if _, err := b.Start(clientside.New(httptest.NewRecorder(), in), in, Options{Buffer: &spool.Options{Memory: 1000}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		out := &http.Request{Header: http.Header{"Expect": {"100-continue"}}, ContentLength: -1}
		var a Attempt
		a.Start(b)
		a.Attach(t.Context(), out, nil)
		a.Close() // by a transport that finds another connection
		if got, err := io.ReadAll(out.Body); string(got) != body || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		if a.Finish(); out.ContentLength != 100 || out.Header["Expect"] != nil || a.Sent() != 100 || !b.Replayable() {
			t.Errorf("length %d, header %v, sent %d", out.ContentLength, out.Header, a.Sent())
		}
	}
}

// A body that an exchange around this one has read as a whole is not read into a second buffer. Its length is as the request
// says, and what has been read of it, or has another length, is not taken for whole.
func TestAdopted(t *testing.T) {
	outer := new(Body)
	defer outer.Finish()
	client := httptest.NewRequest("POST", "/", strings.NewReader("content"))
	if _, err := outer.Start(clientside.New(httptest.NewRecorder(), client), client, Options{Buffer: &spool.Options{Memory: 100}}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		length  int64
		read    int
		adopted bool
		content string
	}{
		"whole":          {7, 0, true, "content"},
		"without length": {-1, 0, true, "content"},
		"shorter":        {6, 0, false, ""},
		"begun":          {5, 2, false, "ntent"},
	} {
		t.Run(name, func(t *testing.T) {
			again := outer.Again()
			defer again.Close()
			if _, err := io.ReadFull(again, make([]byte, test.read)); err != nil {
				t.Fatal(err)
			}
			in := httptest.NewRequest("POST", "/", again)
			in.ContentLength = test.length
			b := new(Body)
			defer b.Finish()
			if _, err := b.Start(clientside.New(httptest.NewRecorder(), in), in, Options{}); err != nil {
				t.Fatal(err)
			}
			out := &http.Request{Header: http.Header{}, ContentLength: test.length}
			var a Attempt
			a.Start(b)
			a.Attach(t.Context(), out, nil)
			if a.Received() != test.adopted || out.ContentLength != test.length || b.Client().Ended() != test.adopted {
				t.Errorf("adopted: %v, length %d, ended %v", a.Received(), out.ContentLength, b.Client().Ended())
			}
			got, err := io.ReadAll(out.Body)
			if err == nil && string(got) != test.content || err != nil && test.content != "" {
				t.Errorf("read %q, %v", got, err)
			}
			a.Finish()
		})
	}
}

// The end of a body that was declared as empty is awaited, unless the request is to be forwarded at once.
func TestDeclaredEmptyAtOnce(t *testing.T) {
	for _, atOnce := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			body, client := io.Pipe()
			in := (&http.Request{Method: "POST", Header: http.Header{"Content-Length": {"0"}}, Body: body, ProtoMajor: 2}).WithContext(t.Context())
			b := new(Body)
			started := make(chan bool, 1)
			go func() {
				_, err := b.Start(clientside.New(httptest.NewRecorder(), in), in, Options{AtOnce: atOnce})
				started <- err == nil && !b.Exists()
			}()
			synctest.Wait()
			if got := len(started) == 1; got != atOnce {
				t.Errorf("at once %v: started %v before the end of the stream", atOnce, got)
			}
			client.Close()
			if !<-started {
				t.Errorf("at once %v: there is a body, or an error", atOnce)
			}
			b.Finish()
		})
	}
}

// A file that is kept is that of a whole body.
func TestBrokenBodyLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	for want, body := range []string{"short", "content"} {
		in := httptest.NewRequest("POST", "/", strings.NewReader(body))
		in.ContentLength = 7
		b := new(Body)
		_, err := b.Start(clientside.New(httptest.NewRecorder(), in), in, Options{Buffer: &spool.Options{Disk: 100, Dir: dir, Name: spool.Kept}})
		b.Finish()
		if files, _ := os.ReadDir(dir); len(files) != want || (err == nil) != (want > 0) {
			t.Errorf("%d files, %v; want %d", len(files), err, want)
		}
	}
}

func TestFault(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want culvert.ErrorKind
	}{
		"malformed":         {t.Context(), io.ErrUnexpectedEOF, culvert.BadRequest},
		"the client's end":  {gone, io.ErrUnexpectedEOF, culvert.ClientGone},
		"too slow":          {gone, os.ErrDeadlineExceeded, culvert.BodyTooSlow},
		"too large":         {t.Context(), &http.MaxBytesError{Limit: 1}, culvert.BodyTooLarge},
		"no room on a disk": {t.Context(), &spool.DiskError{Err: os.ErrPermission}, culvert.Internal},
	} {
		in := httptest.NewRequest("POST", "/", nil).WithContext(test.ctx)
		if got := fault(in, test.err); got.Kind != test.want || got.BytesSent {
			t.Errorf("%s: %v, want %v", name, got.Kind, test.want)
		}
	}
}
