package wsupgrade_test

import (
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/culvert-go/culvert/wsupgrade"
)

// frame renders a frame of up to 125 bytes as a server sends it.
func frame(first byte, payload string) string {
	return string([]byte{first, byte(len(payload))}) + payload
}

// masked renders a frame of up to 125 bytes as a client sends it.
func masked(first byte, payload string) string {
	key := "\x01\x02\x03\x04"
	p := []byte(payload)
	for i := range p {
		p[i] ^= key[i&3]
	}
	return string([]byte{first, 0x80 | byte(len(payload))}) + key + string(p)
}

// nextFrame reads a frame of up to 125 bytes and returns its first byte and its
// payload.
func nextFrame(t *testing.T, r io.Reader) (first byte, payload string, isMasked bool) {
	t.Helper()
	header := make([]byte, 2)
	if _, err := io.ReadFull(r, header); err != nil {
		t.Errorf("frame: %v", err)
		return 0, "", false
	}
	var key [4]byte
	if isMasked = header[1]&0x80 != 0; isMasked {
		_, _ = io.ReadFull(r, key[:])
	}
	p := make([]byte, header[1]&0x7F)
	if _, err := io.ReadFull(r, p); err != nil {
		t.Errorf("frame: %v", err)
	}
	for i := range p {
		p[i] ^= key[i&3]
	}
	return header[0], string(p), isMasked
}

// wantClose reads a Close frame.
func wantClose(t *testing.T, r io.Reader, code int, reason string, isMasked bool) {
	t.Helper()
	first, payload, m := nextFrame(t, r)
	want := string(binary.BigEndian.AppendUint16(nil, uint16(code))) + reason
	if first != 0x88 || payload != want || m != isMasked {
		t.Errorf("frame %#x %q, masked %v, want a Close frame %q, masked %v", first, payload, m, want, isMasked)
	}
}

const (
	text    = 0x81
	pong    = 0x8A
	closing = 0x88
)

// overTunnel runs script over a tunnel that a registry lists, in memory.
func overTunnel(t *testing.T, o wsupgrade.Options, script func(t *testing.T, r *wsupgrade.Registry, client, target *duplex, done <-chan error)) {
	r, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.Registry = r
	inMemory(t, o, handshake, switching, func(t *testing.T, client, target *duplex, done <-chan error) {
		synctest.Wait()
		script(t, r, client, target, done)
	})
}

func only(t *testing.T, r *wsupgrade.Registry) *wsupgrade.Tunnel {
	t.Helper()
	for tunnel := range r.All() {
		return tunnel
	}
	t.Fatal("no tunnel")
	return nil
}

// Both ends are sent the Close frame, the target a masked one, after the frame that is under way;
// what follows is not passed on, and the tunnel ends with the responses.
func TestCloseAtABoundary(t *testing.T) {
	long := masked(text, strings.Repeat("x", 100))
	for at := range len(long) + 1 {
		overTunnel(t, wsupgrade.Options{}, func(t *testing.T, r *wsupgrade.Registry, client, target *duplex, done <-chan error) {
			_, _ = io.WriteString(client, masked(text, "before")+long[:at])
			got := make([]byte, len(masked(text, "before"))+at)
			if _, err := io.ReadFull(target, got); err != nil {
				t.Error(err)
			}
			go only(t, r).Close(wsupgrade.ServiceRestart, "bye")
			wantClose(t, client, 1012, "bye", false)
			synctest.Wait()
			go func() { _, _ = io.WriteString(client, long[at:]+masked(text, "lost")+masked(closing, "\x03\xe9")) }()
			if at > 0 && at < len(long) {
				rest := make([]byte, len(long)-at)
				if _, err := io.ReadFull(target, rest); err != nil || string(rest) != long[at:] {
					t.Errorf("cut at %d: the frame's rest is %q: %v", at, rest, err)
				}
			}
			wantClose(t, target, 1012, "bye", true)
			if _, err := client.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("the client's connection does not end after its response: %v", err)
			}
			stillOpen(t, done, "without the target's response")
			_, _ = io.WriteString(target, frame(text, "lost")+frame(closing, "\x03\xe9"))
			isDone(t, done, "after both responses")
		})
	}
}

// TestCloseReason: the reason of a Close frame is UTF-8, of 123 bytes at most (RFC 6455 section 5.5.1).
func TestCloseReason(t *testing.T) {
	fits := strings.Repeat("x", 121)
	for reason, want := range map[string]string{
		fits + "xy":                    fits + "xy",
		fits + "xyz":                   fits + "xy",
		fits + "é":                     fits + "é",
		fits + "xé":                    fits + "x",
		fits + "€":                     fits,
		fits + "x😀":                    fits + "x",
		strings.Repeat("é", 100):       strings.Repeat("é", 61),
		"not \xff UTF-8":               "not \uFFFD UTF-8",
		fits + "\xff":                  fits,
		strings.Repeat("\x80", 200):    "\uFFFD",
		"cut: " + "€"[:2] + " " + fits: "cut: \uFFFD " + fits[:114],
	} {
		overTunnel(t, wsupgrade.Options{}, func(t *testing.T, r *wsupgrade.Registry, client, target *duplex, done <-chan error) {
			go only(t, r).Close(wsupgrade.GoingAway, reason)
			wantClose(t, client, 1001, want, false)
			wantClose(t, target, 1001, want, true)
			go func() { _, _ = io.WriteString(client, masked(closing, "\x03\xe9")) }()
			_, _ = io.WriteString(target, frame(closing, "\x03\xe9"))
			isDone(t, done, "after both responses")
		})
	}
}

// An end that does not respond has five seconds.
func TestCloseWithoutResponse(t *testing.T) {
	overTunnel(t, wsupgrade.Options{}, func(t *testing.T, r *wsupgrade.Registry, client, target *duplex, done <-chan error) {
		tunnel := only(t, r)
		go tunnel.Close(wsupgrade.GoingAway, "")
		wantClose(t, client, 1001, "", false)
		wantClose(t, target, 1001, "", true)
		discard(t, client, target)
		time.Sleep(4 * time.Second)
		stillOpen(t, done, "at once")
		time.Sleep(2 * time.Second)
		isDone(t, done, "after five seconds")
		<-tunnel.Done()
		if r.Len() != 0 {
			t.Error("the tunnel is listed still")
		}
	})
}

// Nothing follows a Close frame that an end has sent itself.
func TestCloseAfterTheEndsOwn(t *testing.T) {
	overTunnel(t, wsupgrade.Options{}, func(t *testing.T, r *wsupgrade.Registry, client, target *duplex, done <-chan error) {
		go func() { _, _ = io.WriteString(client, masked(closing, "\x03\xe8")) }()
		wantClose(t, target, 1000, "", true)
		synctest.Wait()
		go only(t, r).Close(wsupgrade.GoingAway, "")
		wantClose(t, client, 1001, "", false)
		if _, err := client.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the client reads %v", err)
		}
		go func() { _, _ = io.WriteString(target, frame(closing, "\x03\xe8")) }()
		if _, err := target.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the target reads %v", err)
		}
		isDone(t, done, "after the target's response")
	})
}

// After a frame that can't be followed there is no boundary: no Close frame is put into it, and the
// tunnel is cut.
func TestCloseOfBrokenFrames(t *testing.T) {
	overTunnel(t, wsupgrade.Options{}, func(t *testing.T, r *wsupgrade.Registry, client, target *duplex, done <-chan error) {
		broken := "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02\x03\x04"
		_, _ = io.WriteString(client, broken)
		_, _ = io.ReadFull(target, make([]byte, len(broken)))
		go only(t, r).Close(wsupgrade.GoingAway, "")
		wantClose(t, client, 1001, "", false)
		got := make(chan string)
		go func() {
			p, _ := io.ReadAll(target)
			got <- string(p)
		}()
		discard(t, client)
		_, _ = io.WriteString(client, "more")
		if p := <-got; p != "more" {
			t.Errorf("the target got %q", p)
		}
		isDone(t, done, "after five seconds")
	})
}

// Other protocols have no Close frame.
func TestCloseOfOtherProtocols(t *testing.T) {
	r, err := wsupgrade.NewRegistry(wsupgrade.RegistryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	header := "POST /attach HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	reply := "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	inMemory(t, wsupgrade.Options{Protocols: []string{"tcp"}, Registry: r}, header, reply, func(t *testing.T, client, target *duplex, done <-chan error) {
		synctest.Wait()
		if tunnel := only(t, r); tunnel.Protocol != "tcp" {
			t.Errorf("protocol %q", tunnel.Protocol)
		}
		only(t, r).Close(wsupgrade.GoingAway, "")
		isDone(t, done, "after Close")
		for _, conn := range []*duplex{client, target} {
			if p, _ := io.ReadAll(conn); len(p) != 0 {
				t.Errorf("got %q", p)
			}
		}
	})
}
