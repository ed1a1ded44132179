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

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
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
func checkFailure(t *testing.T, failed *failures, want culvert.ErrorKind, target string) {
	t.Helper()
	failed.await(t)
	if e := failed.only(t); e.Kind != want || e.Target != target || e.HeaderSent != (want == culvert.BodyBroken) || !e.BytesSent || e.ClientSide() {
		t.Errorf("failure %v, %#v, want %v of %s", e, e, want, target)
	}
}

// HTTP/2 knows no 101 (RFC 9113 section 8.6). net/http's transport takes one for an interim response. Over HTTP/1.1 an
// unrequested one is refused as well (TestBadTargets).
func TestHTTP2SwitchingProtocols(t *testing.T) { onPaths(t, testHTTP2SwitchingProtocols) }
func testHTTP2SwitchingProtocols(t *testing.T, via path) {
	for _, client := range receivers {
		for _, over := range http2Overs {
			for _, method := range []string{"GET", "HEAD"} {
				t.Run(client.name+" "+over.name+" "+method, func(t *testing.T) {
					leaktest.Check(t)
					target := over.script(t, framesScript(":status: 101\nupgrade: websocket\n", ":status: 200\n", "data: "))
					var failed failures
					p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, over.options, target), OnError: failed.add})
					if got := client.receive(t, client.serve(t, p), method); !slices.Equal(got.statuses, []int{502}) || !got.whole {
						t.Errorf("the client got %v, want a 502", got)
					}
					checkFailure(t, &failed, culvert.HeaderInvalid, target)
				})
			}
		}
	}
}

// A status code is three digits (RFC 9110 section 15, RFC 9113 section 8.3.2). net/http's transport reads any number over HTTP/2.
func TestHTTP2StatusCode(t *testing.T) { onPaths(t, testHTTP2StatusCode) }
func testHTTP2StatusCode(t *testing.T, via path) {
	for _, status := range []string{"+200", "0200", "00204", "-200", " 200", "200 ", "2e2", "20", "1000", ""} {
		t.Run(status, func(t *testing.T) {
			leaktest.Check(t)
			target := http2Script(t, framesScript(":status: "+status+"\n"))
			var failed failures
			p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{Protocol: upstream.H2C}, target), OnError: failed.add})
			client := receivers[0]
			if got := client.receive(t, client.serve(t, p), "GET"); !slices.Equal(got.statuses, []int{502}) || !got.whole {
				t.Errorf("the client got %v, want a 502", got)
			}
			checkFailure(t, &failed, culvert.HeaderInvalid, target)
		})
	}
}

// A response whose Content-Length is none, or is not that of its content, is malformed (RFC 9110 section 8.6, RFC 9113
// section 8.1.1). net/http's transport leaves that to its caller over HTTP/2. It must not reach a client whole: the next hop
// might find its end elsewhere.
func TestHTTP2ResponseLength(t *testing.T) { onPaths(t, testHTTP2ResponseLength) }
func testHTTP2ResponseLength(t *testing.T, via path) {
	const malformed, broken = culvert.HeaderInvalid, culvert.BodyBroken
	const whole = culvert.ErrorKind(-1)
	for _, test := range []struct {
		name    string
		method  string
		frames  []string
		want    culvert.ErrorKind
		lengths []string // if whole
		body    string   // if whole
	}{
		{"two that differ", "GET", []string{":status: 200\ncontent-length: 2\ncontent-length: 30\n", "data: ok"}, malformed, nil, ""},
		{"a sign", "GET", []string{":status: 200\ncontent-length: +2\n", "data: ok"}, malformed, nil, ""},
		{"no number", "GET", []string{":status: 200\ncontent-length: abc\n", "data: ok"}, malformed, nil, ""},
		{"negative", "GET", []string{":status: 200\ncontent-length: -1\n", "data: ok"}, malformed, nil, ""},
		{"nothing", "GET", []string{":status: 200\ncontent-length: \n", "data: ok"}, malformed, nil, ""},
		{"too large", "GET", []string{":status: 200\ncontent-length: 9223372036854775808\n", "data: ok"}, malformed, nil, ""},
		{"a list", "GET", []string{":status: 200\ncontent-length: 5, 5\n", "data: hello"}, malformed, nil, ""},
		{"no number, HEAD", "HEAD", []string{":status: 200\ncontent-length: abc\n"}, malformed, nil, ""},
		{"two that differ, HEAD", "HEAD", []string{":status: 200\ncontent-length: 2\ncontent-length: 30\n"}, malformed, nil, ""},
		{"two that differ, 304", "GET", []string{":status: 304\ncontent-length: 2\ncontent-length: 30\n"}, malformed, nil, ""},
		{"no number, 304", "GET", []string{":status: 304\ncontent-length: abc\n"}, malformed, nil, ""},
		{"no number, 204", "GET", []string{":status: 204\ncontent-length: abc\n"}, malformed, nil, ""},
		{"no number, interim", "GET", []string{":status: 103\ncontent-length: abc\n", ":status: 200\n", "data: ok"}, malformed, nil, ""},
		{"nothing, and content", "GET", []string{":status: 200\ncontent-length: 0\n", "data: ok"}, malformed, nil, ""},
		{"nothing, and content behind an empty frame", "GET", []string{":status: 200\ncontent-length: 0\ncontent-length: 0\n", "data: ", "data: ok"}, malformed, nil, ""},

		{"too short", "GET", []string{":status: 200\ncontent-length: 5\n", "data: ok"}, broken, nil, ""},
		{"two that are equal, no DATA", "GET", []string{":status: 200\ncontent-length: 5\ncontent-length: 5\n"}, broken, nil, ""},
		{"too short, no DATA", "GET", []string{":status: 200\ncontent-length: 5\n"}, broken, nil, ""},
		{"two that are equal, too short", "GET", []string{":status: 200\ncontent-length: 5\ncontent-length: 5\n", "data: ok"}, broken, nil, ""},
		{"two that are equal, too long", "GET", []string{":status: 200\ncontent-length: 2\ncontent-length: 2\n", "data: hello"}, broken, nil, ""},
		{"too long", "GET", []string{":status: 200\ncontent-length: 1\n", "data: ok"}, broken, nil, ""},
		{"too long, in two frames", "GET", []string{":status: 200\ncontent-length: 2\n", "data: ok", "data: more"}, broken, nil, ""},
		{"too long, behind a flush", "GET", []string{":status: 200\ncontent-length: 5\n", "data: h", "data: ello", "data: more"}, broken, nil, ""},

		{"two that are equal", "GET", []string{":status: 200\ncontent-length: 2\ncontent-length: 2\n", "data: ok"}, whole, []string{"2"}, "ok"},
		{"two that are equal, HEAD", "HEAD", []string{":status: 200\ncontent-length: 2\ncontent-length: 2\n"}, whole, []string{"2"}, ""},
		{"one", "GET", []string{":status: 200\ncontent-length: 5\n", "data: he", "data: llo", "data: "}, whole, []string{"5"}, "hello"},
		{"nothing is there", "GET", []string{":status: 200\ncontent-length: 0\n", "data: "}, whole, []string{"0"}, ""},
		{"nothing is there, in the header", "GET", []string{":status: 200\ncontent-length: 0\n"}, whole, []string{"0"}, ""},
		{"trailers", "GET", []string{":status: 200\ncontent-length: 2\n", "data: ok", "x-sum: 1\n"}, whole, []string{"2"}, "ok"},
	} {
		for _, client := range receivers {
			t.Run(test.name+", "+client.name, func(t *testing.T) {
				leaktest.Check(t)
				target := http2Script(t, framesScript(test.frames...))
				var failed failures
				p := newProxy(t, via, proxy.Options{Upstream: groupAt(t, upstream.Options{Protocol: upstream.H2C}, target), OnError: failed.add})
				got := client.receive(t, client.serve(t, p), test.method)
				if test.want != whole {
					if want := test.want == malformed; got.whole != want || want && !slices.Equal(got.statuses, []int{502}) {
						t.Errorf("the client got %v, want %v", got, test.want)
					}
					checkFailure(t, &failed, test.want, target)
					return
				}
				if !got.whole || got.body != test.body || !slices.Equal(got.lengths, test.lengths) {
					t.Errorf("the client got %v, want %q %q", got, test.lengths, test.body)
				}
				if len(failed.all) > 0 {
					t.Errorf("failures %v", failed.all)
				}
			})
		}
	}
}

// The length of a transport's response is said twice, and must be one.
func TestResponseLengthOfATransport(t *testing.T) {
	for _, test := range []struct {
		name   string
		header http.Header
		length int64
		body   string
		status int // 0: the response is broken off
	}{
		{"no field", http.Header{}, 2, "ok", 200},
		{"neither", http.Header{}, 0, "ok", 200},
		{"no length", http.Header{"Content-Length": {"2"}}, -1, "ok", 200},
		{"a length that was left out", http.Header{"Content-Length": {"2"}}, 0, "ok", 200},
		{"a length that was left out, and a shorter body", http.Header{"Content-Length": {"3"}}, 0, "ok", 0},
		{"both", http.Header{"Content-Length": {"2"}}, 2, "ok", 200},
		{"the field is 0", http.Header{"Content-Length": {"0"}}, 0, "ok", 502},
		{"the field is 0, and no length", http.Header{"Content-Length": {"0"}}, -1, "ok", 502},
		{"they differ", http.Header{"Content-Length": {"2"}}, 3, "ok", 502},
		{"the field is no number", http.Header{"Content-Length": {"2x"}}, 2, "ok", 502},
		{"there is no body", http.Header{"Content-Length": {"2"}}, 2, "", 502},
		{"no length, and a shorter body", http.Header{"Content-Length": {"3"}}, -1, "ok", 0},
		{"no field, and a shorter body", http.Header{}, 3, "ok", 0},
		{"no field, and a longer body", http.Header{}, 1, "ok", 0},
	} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, HTTP/%d", test.name, version), func(t *testing.T) {
				leaktest.Check(t)
				transport := roundTripper(func(r *http.Request) (*http.Response, error) {
					resp := &http.Response{StatusCode: 200, ProtoMajor: version, Header: test.header.Clone(), ContentLength: test.length, Body: http.NoBody, Request: r}
					if test.body != "" {
						resp.Body = io.NopCloser(strings.NewReader(test.body))
					}
					return resp, nil
				})
				var failed failures
				target := wiretest.Unused(t)
				p := newProxy(t, anyPath, proxy.Options{Upstream: groupAt(t, upstream.Options{}, target), Transport: transport, OnError: failed.add})
				got := http1Received(t, wiretest.Serve(t, p), "GET")
				switch test.status {
				case 200:
					if !got.whole || got.body != "ok" || len(failed.all) > 0 {
						t.Errorf("the client got %v, failures %v", got, failed.all)
					}
				case 502:
					if !slices.Equal(got.statuses, []int{502}) {
						t.Errorf("the client got %v", got)
					}
					checkFailure(t, &failed, culvert.HeaderInvalid, target)
				default:
					if got.whole {
						t.Errorf("the client got %v", got)
					}
					checkFailure(t, &failed, culvert.BodyBroken, target)
				}
			})
		}
	}
}

// A malformed response is a failure: its status does not lease another target.
func TestMalformedResponseOfAStatusToDrop(t *testing.T) {
	onPaths(t, testMalformedResponseOfAStatusToDrop)
}
func testMalformedResponseOfAStatusToDrop(t *testing.T, via path) {
	leaktest.Check(t)
	bad := http2Script(t, framesScript(":status: 503\ncontent-length: abc\n"))
	good := http2Script(t, framesScript(":status: 200\n"))
	for _, errors := range []bool{false, true} {
		group := groupAt(t, upstream.Options{Protocol: upstream.H2C, Balance: upstream.First()}, bad, good)
		p := newProxy(t, via, proxy.Options{Upstream: group, Retry: proxy.Retry{Statuses: []int{503}, Errors: errors}})
		want := http.StatusBadGateway
		if errors {
			want = http.StatusOK
		}
		if status, record := recorded(t, p, "GET", ""); status != want {
			t.Errorf("retries of errors %v: status %d, want %d: %v", errors, status, want, record.Err)
		}
		for status := range group.Targets() {
			if status.InFlight != 0 {
				t.Errorf("%s has %d requests in flight", status.Target.Addr, status.InFlight)
			}
		}
	}
}
