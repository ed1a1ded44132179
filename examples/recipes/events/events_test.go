package events_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/examples/recipes/events"
	"github.com/culvert-go/culvert/upstream"
)

func TestEachEventAtOnce(t *testing.T) {
	next, left, uploading := make(chan int), make(chan bool), make(chan bool)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			close(uploading)
			_, _ = io.Copy(w, r.Body)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case n := <-next:
				_, _ = fmt.Fprintf(w, "id: %d\ndata: after %s\n\n", n, r.Header.Get("Last-Event-ID"))
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				close(left)
				return
			}
		}
	}))
	defer target.Close()
	app, err := upstream.New(upstream.Options{}, upstream.Target{Addr: target.Listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	h, err := events.Gateway(app)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- events.Serve(ctx, l, h) }()

	r, err := http.NewRequest("GET", "http://"+l.Addr().String()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", "41")
	r.Header.Set("Accept-Encoding", "gzip")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var lines *bufio.Scanner
	for _, n := range []int{42, 43} { // the second one is sent when the first one has been read
		next <- n
		if lines == nil {
			zip, err := gzip.NewReader(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			lines = bufio.NewScanner(zip)
		}
		for _, want := range []string{fmt.Sprintf("id: %d", n), "data: after 41", ""} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("%q, %v; want %q", lines.Text(), lines.Err(), want)
			}
		}
	}
	body, upload := io.Pipe()
	stored := make(chan error, 1)
	go func() {
		resp, err := http.Post("http://"+l.Addr().String()+"/", "text/plain", body)
		if err == nil {
			var b []byte
			b, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil && string(b) != "whole" {
				err = fmt.Errorf("stored %q", b)
			}
		}
		stored <- err
	}()
	<-uploading
	stop()
	<-left // the stream has ended, and the upload has not
	if _, err := io.WriteString(upload, "whole"); err != nil {
		t.Error(err)
	}
	upload.Close()
	if err := <-stored; err != nil {
		t.Errorf("an upload during the shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Error("the stream looks complete")
	}
}
