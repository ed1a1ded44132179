package wsupgrade_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/klauspost/compress/flate"

	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

func observed(o wsupgrade.Observer) wsupgrade.Options {
	return wsupgrade.Options{Observe: func(*http.Request) *wsupgrade.Observer { return &o }}
}

// A broken frame ends the WebSocket with the code of RFC 6455, at both ends.
func TestBrokenFrames(t *testing.T) {
	everything := func(*wsupgrade.Message) error { return nil }
	for name, test := range map[string]struct {
		from string // who sends it
		sent string
		code int
	}{
		"unmasked client frame":     {"client", frame(text, "x"), 1002},
		"masked server frame":       {"target", masked(text, "x"), 1002},
		"RSV1 without extension":    {"client", masked(text|0x40, "x"), 1002},
		"RSV2":                      {"target", frame(text|0x20, "x"), 1002},
		"RSV3":                      {"target", frame(text|0x10, "x"), 1002},
		"reserved data opcode":      {"client", masked(0x83, "x"), 1002},
		"reserved control opcode":   {"client", masked(0x8B, "x"), 1002},
		"long ping":                 {"target", "\x89\x7e\x00\x7e" + strings.Repeat("x", 126), 1002},
		"fragmented ping":           {"target", frame(0x09, "x"), 1002},
		"length with the top bit":   {"target", "\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00", 1002},
		"continuation of nothing":   {"target", frame(0x80, "x"), 1002},
		"a message in another":      {"target", frame(0x01, "x") + frame(text, "y"), 1002},
		"bad UTF-8":                 {"client", masked(text, "a\xffb"), 1007},
		"bad UTF-8 over two frames": {"target", frame(0x01, "a\xe2\x82") + frame(0x80, "x"), 1007},
		"cut UTF-8":                 {"target", frame(text, "a\xe2\x82"), 1007},
		"surrogate":                 {"target", frame(text, "\xed\xa0\x80"), 1007},
		"too big":                   {"target", "\x82\x7e\x01\x01", 1009},
		"too big in fragments":      {"target", frame(0x02, strings.Repeat("x", 100)) + frame(0x00, strings.Repeat("x", 100)) + frame(0x80, strings.Repeat("x", 57)), 1009},
		"Close of one byte":         {"client", masked(closing, "\x03"), 1002},
		"Close with code 999":       {"client", masked(closing, "\x03\xe7"), 1002},
		"Close with code 1005":      {"client", masked(closing, "\x03\xed"), 1002},
		"Close with code 1006":      {"target", frame(closing, "\x03\xee"), 1002},
		"Close with code 1015":      {"target", frame(closing, "\x03\xf7"), 1002},
		"Close with code 2999":      {"target", frame(closing, "\x0b\xb7"), 1002},
		"Close with bad UTF-8":      {"target", frame(closing, "\x03\xe8\xff"), 1007},
	} {
		for called, o := range map[string]wsupgrade.Observer{
			"messages": {Message: everything, MaxMessage: 256},
			"frames":   {Frame: func(*wsupgrade.Frame) error { return nil }, MaxMessage: 256},
		} {
			if called == "frames" && name == "too big in fragments" {
				continue // none of its frames is too big
			}
			t.Run(name+", "+called, func(t *testing.T) {
				overTunnel(t, observed(o), func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
					from := client
					if test.from == "target" {
						from = target
					}
					go func() { _, _ = io.WriteString(from, test.sent) }()
					got := make(chan []byte, 2)
					for _, end := range []*duplex{client, target} {
						go func() {
							all, _ := io.ReadAll(end)
							got <- all
						}()
					}
					time.Sleep(10 * time.Second)
					isDone(t, done, "after a broken frame")
					for range 2 {
						all := <-got
						unmasked := unmask(all)
						if len(unmasked) < 4 || !bytes.Contains(unmasked, []byte{closing}) || codeOf(unmasked) != test.code {
							t.Errorf("%x, want a Close frame with %d at the end", all, test.code)
						}
					}
				})
			})
		}
	}
}

// unmask returns short frames without their masks.
func unmask(all []byte) (frames []byte) {
	for len(all) >= 2 {
		n, isMasked := int(all[1]&0x7F), all[1]&0x80 != 0
		frames = append(frames, all[0], byte(n))
		all = all[2:]
		var key [4]byte
		if isMasked && len(all) >= 4 {
			key = [4]byte(all)
			all = all[4:]
		}
		n = min(n, len(all))
		for i := range n {
			frames = append(frames, all[i]^key[i&3])
		}
		all = all[n:]
	}
	return frames
}

// codeOf returns the code of the Close frame, without or with a reason, at the end.
func codeOf(frames []byte) int {
	last := 0
	for i := 0; i+1 < len(frames); i += 2 + int(frames[i+1]) {
		if frames[i] == closing && frames[i+1] >= 2 {
			last = int(frames[i+2])<<8 | int(frames[i+3])
		}
	}
	return last
}

// What RFC 6455 allows is passed on, in pieces of any size.
func TestObservedMessages(t *testing.T) {
	stream := masked(0x01, "a\xe2") + masked(0x89, "ping") + masked(0x00, "\x82") + masked(0x80, "\xac!") + masked(0x82, "") + masked(pong, "late") + masked(closing, "\x03\xe8bye")
	for _, piece := range []int{1, 2, 3, 7, 1000} {
		var seen []string
		o := wsupgrade.Observer{Message: func(m *wsupgrade.Message) error {
			if m.FromClient {
				seen = append(seen, m.Type.String()+" "+string(m.Data))
			}
			return nil
		}}
		overTunnel(t, observed(o), func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
			go func() {
				for rest := stream; rest != ""; {
					n := min(piece, len(rest))
					_, _ = io.WriteString(client, rest[:n])
					rest = rest[n:]
				}
			}()
			for _, want := range []string{"\x89ping", "\x81a€!", "\x82", "\x8alate", "\x88\x03\xe8bye"} {
				first, payload, isMasked := nextFrame(t, target)
				if string(first)[0:] == "" || string([]byte{first})+payload != want || !isMasked {
					t.Errorf("pieces of %d: frame %#x %q, masked %v, want %q", piece, first, payload, isMasked, want)
				}
			}
		})
		if got, want := strings.Join(seen, "|"), "ping ping|text a€!|binary |pong late|close \x03\xe8bye"; got != want {
			t.Errorf("pieces of %d: seen %q, want %q", piece, got, want)
		}
	}
}

// With Frame alone fragments are passed on as fragments.
func TestObservedFrames(t *testing.T) {
	var seen []wsupgrade.Frame
	o := wsupgrade.Observer{Frame: func(f *wsupgrade.Frame) error {
		kept := *f
		kept.Data = bytes.Clone(f.Data)
		seen = append(seen, kept)
		if string(f.Data) == "secret" {
			f.Data = []byte("******")
		}
		return nil
	}}
	overTunnel(t, observed(o), func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
		go func() {
			_, _ = io.WriteString(target, frame(0x01, "a\xe2\x82")+frame(0x00, "\xac")+frame(0x80, "secret"))
		}()
		for _, want := range []string{"\x01a\xe2\x82", "\x00\xac", "\x80******"} {
			if first, payload, _ := nextFrame(t, client); string([]byte{first})+payload != want {
				t.Errorf("frame %#x %q, want %q", first, payload, want)
			}
		}
		for i, want := range []wsupgrade.Frame{{Type: wsupgrade.Text}, {Type: wsupgrade.Text, Continuation: true}, {Type: wsupgrade.Text, Continuation: true, Final: true}} {
			if got := seen[i]; got.Type != want.Type || got.Continuation != want.Continuation || got.Final != want.Final || got.FromClient {
				t.Errorf("frame %d: %+v, want %+v", i, got, want)
			}
		}
	})
}

// verdict is the error that the observer of TestVerdicts returns for a message.
func verdict(m *wsupgrade.Message) error {
	switch string(m.Data) {
	case "change":
		m.Data = []byte("changed and longer than it was")
	case "drop":
		return wsupgrade.ErrDrop
	case "refuse":
		return errors.New("any other")
	case "close":
		return &wsupgrade.CloseError{Code: 4000, Reason: "no more"}
	}
	return nil
}

// gorillas connects a gorilla client through a gateway with an observer to a gorilla
// server that echoes.
func gorillas(t *testing.T, compress bool, o wsupgrade.Observer) *websocket.Conn {
	t.Helper()
	upgrader := websocket.Upgrader{EnableCompression: compress}
	target := wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		for {
			kind, message, err := conn.ReadMessage()
			if err != nil {
				return
			}
			if err := conn.WriteMessage(kind, message); err != nil {
				return
			}
		}
	}))
	dialer := websocket.Dialer{EnableCompression: compress}
	conn, resp, err := dialer.Dial("ws://"+gateway(t, observed(o), target)+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if got, want := resp.Header.Get("Sec-WebSocket-Extensions") != "", compress && o.Inflate; got != want {
		t.Errorf("extensions %q", resp.Header.Get("Sec-WebSocket-Extensions"))
	}
	return conn
}

// Messages are passed, changed, dropped and refused, deflated or not.
func TestVerdicts(t *testing.T) {
	leaktest.Check(t)
	for name, test := range map[string]struct{ compress, inflate bool }{
		"plain": {false, false}, "negotiated away": {true, false}, "deflated": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			for last, code := range map[string]int{"refuse": 1008, "close": 4000} {
				conn := gorillas(t, test.compress, wsupgrade.Observer{Inflate: test.inflate, Message: verdict})
				for _, exchange := range [][2]string{{"pass", "pass"}, {"change", "changed and longer than it was"}, {"", ""}, {strings.Repeat("long ", 30000), strings.Repeat("long ", 30000)}} {
					send(t, conn, "drop")
					send(t, conn, exchange[0])
					if _, got, err := conn.ReadMessage(); err != nil || string(got) != exchange[1] {
						t.Fatalf("%.20q was echoed as %.20q: %v", exchange[0], got, err)
					}
				}
				send(t, conn, last)
				if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, code) {
					t.Errorf("%s: ended with %v, want %d", last, err, code)
				}
				conn.Close()
			}
		})
	}
}

func send(t *testing.T, conn *websocket.Conn, message string) {
	t.Helper()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		t.Fatal(err)
	}
}

// The largest MaxMessage bounds nothing, inflated messages included.
func TestLargestMaxMessage(t *testing.T) {
	leaktest.Check(t)
	conn := gorillas(t, true, wsupgrade.Observer{Inflate: true, MaxMessage: math.MaxInt64, Message: func(*wsupgrade.Message) error { return nil }})
	send(t, conn, "message")
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != "message" {
		t.Errorf("echoed as %q: %v", got, err)
	}
}

// A message that is small on the wire and large inflated is over the limit.
func TestInflatedBomb(t *testing.T) {
	leaktest.Check(t)
	conn := gorillas(t, true, wsupgrade.Observer{Inflate: true, MaxMessage: 100000, Message: func(*wsupgrade.Message) error { return nil }})
	send(t, conn, strings.Repeat("x", 100000))
	if _, got, err := conn.ReadMessage(); err != nil || len(got) != 100000 {
		t.Fatalf("%d bytes: %v", len(got), err)
	}
	send(t, conn, strings.Repeat("x", 100001))
	if _, _, err := conn.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseMessageTooBig) {
		t.Errorf("ended with %v", err)
	}
}

// Messages that refer to earlier ones, with context takeover, are inflated, and the receiver does
// not need those that are dropped.
func TestContextTakeover(t *testing.T) {
	leaktest.Check(t)
	var mu sync.Mutex
	var seen []string
	o := wsupgrade.Observer{Inflate: true, Message: func(m *wsupgrade.Message) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, string(m.Data))
		if len(seen) == 2 {
			return wsupgrade.ErrDrop
		}
		return nil
	}}
	got := make(chan []byte, 8)
	target := wiretest.Target(t, func(p *wiretest.Peer) {
		if header := p.Header(); !strings.Contains(header, "Sec-Websocket-Extensions: permessage-deflate; client_max_window_bits\r\n") {
			t.Errorf("offer %q", header)
		}
		p.Send(with(switching, "Sec-WebSocket-Extensions: permessage-deflate"))
		for range 2 {
			first, payload, _ := nextFrame(t, p.R)
			if first == 0xC1 {
				r := flate.NewReader(strings.NewReader(payload + "\x00\x00\xff\xff\x01\x00\x00\xff\xff"))
				inflated, err := io.ReadAll(r)
				if err != nil {
					t.Error(err)
				}
				payload = string(inflated)
			}
			got <- []byte(payload)
		}
	})
	p := open(t, gateway(t, observed(o), target), "Sec-WebSocket-Extensions: x-other, permessage-deflate; client_max_window_bits")
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	const message = "the quick brown fox jumps over the lazy dog, the quick brown fox jumps over the lazy dog"
	for i := range 3 {
		b.Reset()
		_, _ = io.WriteString(w, message)
		_ = w.Flush()
		deflated := strings.TrimSuffix(b.String(), "\x00\x00\xff\xff")
		if i > 0 && len(deflated) > 20 {
			t.Fatalf("message %d refers to nothing: %d bytes", i, len(deflated))
		}
		p.Send(masked(0xC1, deflated))
	}
	for range 2 {
		if m := string(wiretest.Await(t, got, "message")); m != message {
			t.Errorf("the target got %q", m)
		}
	}
	p.Ended()
	if strings.Join(seen, "|") != strings.Repeat(message+"|", 2)+message {
		t.Errorf("seen %q", seen)
	}
}
