package wsupgrade_test

import (
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/wsupgrade"
)

// Bytes of either side keep a tunnel open; without any it is closed.
func TestIdleTimeout(t *testing.T) {
	overTunnel(t, wsupgrade.Options{IdleTimeout: time.Minute}, func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
		for _, pair := range [][2]*duplex{{client, target}, {target, client}, {client, target}} {
			time.Sleep(50 * time.Second)
			sent := masked(text, "x")
			_, _ = io.WriteString(pair[0], sent)
			_, _ = io.ReadFull(pair[1], make([]byte, len(sent)))
		}
		time.Sleep(59 * time.Second)
		stillOpen(t, done, "within the time")
		wantClose(t, client, 1001, "idle", false)
		wantClose(t, target, 1001, "idle", true)
		discard(t, client, target)
		time.Sleep(6 * time.Second)
		isDone(t, done, "after a minute")
	})
}

// TestIdleTimeoutWithPongs: an end that responds to pings, or sends Pongs unrequested, is idle; one that sends pings, or the
// pieces of a frame of data, is not. It is the same with an Observer.
func TestIdleTimeoutWithPongs(t *testing.T) {
	message := masked(text, strings.Repeat("x", 100))
	pieces := []string{masked(pong, "123") + message[:1], message[1:8], message[8:50], message[50:]}
	for _, test := range []struct {
		name  string
		sent  []string
		o     wsupgrade.Options
		ended bool
	}{
		{"Pongs to our pings", nil, wsupgrade.Options{PingInterval: 20 * time.Second}, true},
		{"other Pongs", []string{masked(pong, ""), masked(pong, "12"), masked(pong, strings.Repeat("x", 125)), masked(pong, "") + masked(pong, "1"), masked(pong, "x")[:1]}, wsupgrade.Options{}, true},
		{"pings", []string{masked(0x89, ""), masked(0x89, "12"), masked(pong, "12") + masked(0x89, ""), masked(0x89, "")}, wsupgrade.Options{}, false},
		{"pieces of a message", pieces, wsupgrade.Options{}, false},
		{"messages", []string{masked(text, ""), masked(text, "x"), masked(pong, "") + masked(text, "") + masked(pong, ""), masked(text, "x")}, wsupgrade.Options{}, false},
	} {
		for name, o := range map[string]*wsupgrade.Observer{"": nil, ", inspected": {Message: func(*wsupgrade.Message) error { return nil }}} {
			t.Run(test.name+name, func(t *testing.T) {
				test.o.IdleTimeout = time.Minute
				test.o.Observe = func(*http.Request) *wsupgrade.Observer { return o }
				overTunnel(t, test.o, func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
					if test.o.PingInterval > 0 {
						go respondToPings(target)
						go respondToUnmaskedPings(client)
					} else {
						discard(t, client, target)
					}
					for _, piece := range test.sent {
						time.Sleep(25 * time.Second)
						_, _ = io.WriteString(client, piece)
					}
					time.Sleep(70*time.Second - time.Duration(len(test.sent))*10*time.Second)
					if test.ended {
						isDone(t, done, "after a minute")
					} else {
						stillOpen(t, done, "in use")
					}
				})
			})
		}
	}
}

// The longest Durations end no tunnel, while a shorter one has them checked.
func TestLongestTimes(t *testing.T) {
	o := wsupgrade.Options{IdleTimeout: math.MaxInt64, MaxLifetime: math.MaxInt64, PingInterval: time.Minute}
	overTunnel(t, o, func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
		for range 6 {
			time.Sleep(20 * time.Second)
			for _, pair := range [][2]*duplex{{client, target}, {target, client}} {
				sent := masked(text, "x")
				_, _ = io.WriteString(pair[0], sent)
				_, _ = io.ReadFull(pair[1], make([]byte, len(sent)))
			}
			stillOpen(t, done, "while both ends send")
		}
	})
}

func TestMaxLifetime(t *testing.T) {
	overTunnel(t, wsupgrade.Options{MaxLifetime: time.Hour}, func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
		for range 59 {
			time.Sleep(time.Minute)
			_, _ = io.WriteString(client, "\x81\x80\x00\x00\x00\x00")
			_, _ = io.ReadFull(target, make([]byte, 6))
		}
		stillOpen(t, done, "within the time")
		wantClose(t, client, 1001, "maximum lifetime", false)
		wantClose(t, target, 1001, "maximum lifetime", true)
	})
}

// A silent end is sent a ping. Its Pong is not passed on, in pieces of any size; other Pongs are.
func TestPing(t *testing.T) {
	for _, piece := range []int{1, 2, 3, 5, 14, 100} {
		overTunnel(t, wsupgrade.Options{PingInterval: time.Minute}, func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
			for range 3 {
				first, ping, isMasked := nextFrame(t, client)
				if first != 0x89 || len(ping) != 8 || isMasked {
					t.Fatalf("frame %#x %q", first, ping)
				}
				_, other, isMasked := nextFrame(t, target)
				if !isMasked || other == ping {
					t.Errorf("ping %q to the target, masked %v", other, isMasked)
				}
				_, _ = io.WriteString(target, frame(pong, other))
				stream := masked(pong, "12345678") + masked(pong, "") + masked(text, "a") + masked(pong, ping) + masked(pong, ping) + masked(text, "b")
				go func() {
					for len(stream) > 0 {
						n := min(piece, len(stream))
						_, _ = io.WriteString(client, stream[:n])
						stream = stream[n:]
					}
				}()
				for _, want := range []string{"12345678", "", "a", ping, "b"} {
					if _, payload, _ := nextFrame(t, target); payload != want {
						t.Errorf("pieces of %d: the target got %q, want %q", piece, payload, want)
					}
				}
			}
			stillOpen(t, done, "with ends that respond")
		})
	}
}

// respondToPings responds to a gateway's pings until it receives something else.
func respondToPings(target io.ReadWriter) {
	ping := make([]byte, 2+4+8)
	for {
		if _, err := io.ReadFull(target, ping); err != nil || ping[0] != 0x89 {
			return
		}
		for i := range 8 {
			ping[6+i] ^= ping[2+i&3]
		}
		_, _ = io.WriteString(target, frame(pong, string(ping[6:])))
	}
}

// respondToUnmaskedPings is respondToPings for a client.
func respondToUnmaskedPings(client io.ReadWriter) {
	ping := make([]byte, 2+8)
	for {
		if _, err := io.ReadFull(client, ping); err != nil || ping[0] != 0x89 {
			return
		}
		_, _ = io.WriteString(client, masked(pong, string(ping[2:])))
	}
}

// An end that is gone without a close is found.
func TestPingWithoutPong(t *testing.T) {
	overTunnel(t, wsupgrade.Options{PingInterval: time.Minute}, func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
		discard(t, client)
		go respondToPings(target)
		time.Sleep(119 * time.Second)
		stillOpen(t, done, "within the time")
		time.Sleep(7 * time.Second)
		isDone(t, done, "after two intervals")
	})
}

// An end is not sent a ping in the middle of a frame, but after it.
func TestPingAtABoundary(t *testing.T) {
	overTunnel(t, wsupgrade.Options{PingInterval: time.Minute}, func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
		go respondToPings(target)
		whole := frame(text, "0123456789")
		_, _ = io.WriteString(target, whole[:5])
		time.Sleep(61 * time.Second)
		synctest.Wait()
		_, _ = io.ReadFull(client, make([]byte, 5))
		_, _ = io.WriteString(target, whole[5:])
		rest := make([]byte, len(whole)-5)
		if _, err := io.ReadFull(client, rest); err != nil || string(rest) != whole[5:] {
			t.Errorf("the frame's rest is %q", rest)
		}
		if first, _, _ := nextFrame(t, client); first != 0x89 {
			t.Errorf("frame %#x", first)
		}
		stillOpen(t, done, "with ends that respond")
	})
}

// A Pong that is received after the next ping was sent still counts as a response, and is not
// passed on.
func TestLatePong(t *testing.T) {
	for name, o := range map[string]*wsupgrade.Observer{"passed": nil, "inspected": {Message: func(*wsupgrade.Message) error { return nil }}} {
		options := wsupgrade.Options{PingInterval: time.Minute, Observe: func(*http.Request) *wsupgrade.Observer { return o }}
		overTunnel(t, options, func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
			got := make(chan string, 16)
			go func() {
				for payload := ""; payload != "end"; {
					var first byte
					if first, payload, _ = nextFrame(t, target); first == 0x89 {
						_, _ = io.WriteString(target, frame(pong, payload))
					} else {
						got <- payload
					}
				}
			}()
			var pings []string
			for range 3 { // the client is busy: it sends, but has not read the pings
				_, ping, _ := nextFrame(t, client)
				pings = append(pings, ping)
				_, _ = io.WriteString(client, masked(text, "busy"))
			}
			for _, ping := range pings {
				_, _ = io.WriteString(client, masked(pong, ping))
			}
			_, _ = io.WriteString(client, masked(text, "end"))
			for _, want := range []string{"busy", "busy", "busy", "end"} {
				if payload := <-got; payload != want {
					t.Errorf("%s: the target got %q, want %q", name, payload, want)
				}
			}
			stillOpen(t, done, "with ends that respond")
		})
	}
}

// TestPingThatIsNotAccepted: an end that reads nothing, not even our ping, has no more time than one that does not respond,
// and a tunnel whose ping is not accepted ends with its lifetime.
func TestPingThatIsNotAccepted(t *testing.T) {
	overTunnel(t, wsupgrade.Options{PingInterval: time.Minute}, func(t *testing.T, _ *wsupgrade.Registry, _, target *duplex, done <-chan error) {
		go respondToPings(target)
		time.Sleep(119 * time.Second)
		stillOpen(t, done, "within the time")
		time.Sleep(10 * time.Second)
		isDone(t, done, "after two intervals")
	})
	overTunnel(t, wsupgrade.Options{PingInterval: time.Minute, MaxLifetime: 3 * time.Minute}, func(t *testing.T, _ *wsupgrade.Registry, client, target *duplex, done <-chan error) {
		go func() {
			for {
				h := make([]byte, 6)
				if _, err := io.ReadFull(target, h); err != nil {
					return
				}
				payload := make([]byte, h[1]&0x7F)
				_, _ = io.ReadFull(target, payload)
				if h[0] == 0x89 {
					for i := range payload {
						payload[i] ^= h[2+i&3]
					}
					_, _ = io.WriteString(target, frame(pong, string(payload)))
				}
			}
		}()
		time.Sleep(61 * time.Second)
		for range 4 { // the client sends, and reads nothing
			_, _ = io.WriteString(client, "\x81\x80\x00\x00\x00\x00")
			time.Sleep(29 * time.Second)
		}
		stillOpen(t, done, "within the time")
		time.Sleep(9 * time.Second)
		isDone(t, done, "after its lifetime")
	})
}
