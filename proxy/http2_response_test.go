package proxy_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
)

// clientGot is what a client has received of a response, interim responses included.
type clientGot struct {
	statuses []int
	lengths  []string // the Content-Length fields of the last header
	body     string
	whole    bool // the response has ended as one that is complete
}

func (r clientGot) String() string {
	return fmt.Sprintf("%v %q %q, whole %v", r.statuses, r.lengths, r.body, r.whole)
}

// http1Received requests / from the HTTP/1.1 server at addr.
func http1Received(t *testing.T, addr, method string) (got clientGot) {
	client := wiretest.Dial(t, addr)
	client.Send(method + " / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	raw := client.Ended() // also of a connection that is reset
	in := bufio.NewReader(strings.NewReader(raw))
	for {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return got
		}
		got.statuses, got.lengths = append(got.statuses, resp.StatusCode), resp.Header["Content-Length"]
		if resp.StatusCode < 200 && resp.StatusCode != http.StatusSwitchingProtocols {
			continue
		}
		body, err := io.ReadAll(resp.Body)
		got.body, got.whole = string(body), err == nil
		return got
	}
}

// http2Received is http1Received over HTTP/2 with TLS.
func http2Received(t *testing.T, addr, method string) (got clientGot) {
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = framer.WriteSettings()
	block := headerBlock(":method: " + method + "\n:scheme: https\n:authority: a\n:path: /\n")
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndStream: true, EndHeaders: true})
	declared := -1
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if frame.Header().StreamID != 1 {
			continue
		}
		switch frame := frame.(type) {
		case *http2.RSTStreamFrame:
			return got
		case *http2.DataFrame:
			got.body += string(frame.Data())
		case *http2.MetaHeadersFrame:
			if frame.PseudoValue("status") == "" {
				break // trailers
			}
			status, _ := strconv.Atoi(frame.PseudoValue("status"))
			got.statuses, got.lengths = append(got.statuses, status), nil
			for _, field := range frame.RegularFields() {
				if field.Name == "content-length" {
					got.lengths = append(got.lengths, field.Value)
					declared, _ = strconv.Atoi(field.Value)
				}
			}
		}
		if frame.Header().Flags.Has(http2.FlagDataEndStream) && (frame.Header().Type == http2.FrameData || frame.Header().Type == http2.FrameHeaders) {
			got.whole = method == "HEAD" || declared < 0 || declared == len(got.body)
			return got
		}
	}
}

var receivers = []struct {
	name    string
	serve   func(*testing.T, http.Handler) (addr string)
	receive func(t *testing.T, addr, method string) clientGot
}{
	{"HTTP/1.1 client", func(t *testing.T, h http.Handler) string { return wiretest.Serve(t, h) }, http1Received},
	{"HTTP/2 client", func(t *testing.T, h http.Handler) string { return h2Server(t, h).Listener.Addr().String() }, http2Received},
}

// framesScript responds with header sections and DATA frames, of which those begin with "data: ". The last one ends the stream.
func framesScript(list ...string) func(f *http2.Framer, stream uint32) error {
	return func(f *http2.Framer, stream uint32) (err error) {
		for i, frame := range list {
			last := i == len(list)-1
			if data, ok := strings.CutPrefix(frame, "data: "); ok {
				err = f.WriteData(stream, last, []byte(data))
			} else {
				err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headerBlock(frame), EndStream: last, EndHeaders: true})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// checkFailure checks that failed has the one failure, of the target.
func checkFailure(t *testing.T, failed *failures, want proxy.Kind, target string) {
	t.Helper()
	failed.await(t)
	if e := failed.only(t); e.Kind != want || e.Target != target || e.HeadSent != (want == proxy.BodyBroken) || !e.Wrote || e.ClientSide() {
		t.Errorf("failure %v, %#v, want %v of %s", e, e, want, target)
	}
}

// HTTP/2 knows no 101 (RFC 9113 section 8.6). net/http's transport takes one for an interim response. Over HTTP/1.1 an
// unrequested one is refused as well (TestBadTargets).
func TestHTTP2SwitchingProtocols(t *testing.T) {
	for _, client := range receivers {
		for _, over := range http2Overs {
			for _, method := range []string{"GET", "HEAD"} {
				t.Run(client.name+" "+over.name+" "+method, func(t *testing.T) {
					leaktest.Check(t)
					target := over.script(t, framesScript(":status: 101\nupgrade: websocket\n", ":status: 200\n", "data: "))
					var failed failures
					p := newProxy(t, proxy.Options{Upstream: groupAt(t, over.options, target), OnError: failed.add})
					if got := client.receive(t, client.serve(t, p), method); !slices.Equal(got.statuses, []int{502}) || !got.whole {
						t.Errorf("the client got %v, want a 502", got)
					}
					checkFailure(t, &failed, proxy.HeadInvalid, target)
				})
			}
		}
	}
}
