package e2e

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The accidents that this project comes from, each on real sockets, told by
// what must come out and not by comparison alone.

// TestAccidentNginx404WithoutUpgrade: the WebSocket behind nginx was answered
// 404, since the configuration handed no Upgrade on. Both servers do what the
// file says, either way.
func TestAccidentNginx404WithoutUpgrade(t *testing.T) {
	for file, want := range map[string]int{"source.conf": 101, "source_without_upgrade.conf": 404} {
		for name, start := range servers {
			s := newSide(t, start, scenario{conf: httpBlock(source(file))})
			answers := exchange(t, s.server.address, "", webSocketRequest("/serviceName/ws"), "GET")
			if answers[0].Status != want {
				t.Errorf("%s with %s: status %d, want %d", name, file, answers[0].Status, want)
			}
			if want == 101 && answers[0].Body != webSocketFrame {
				t.Errorf("%s with %s: the frame came back as %q", name, file, answers[0].Body)
			}
		}
	}
}

// TestAccidentWebpackWarmUp: a dev proxy took upgrades only after a first plain
// request. Here the upgrade is the first request that the process ever sees.
func TestAccidentWebpackWarmUp(t *testing.T) {
	s := newSide(t, startCulvert, scenario{conf: httpBlock(source("source.conf"))})
	answers := exchange(t, s.server.address, "", webSocketRequest("/serviceName/ws"), "GET")
	if answers[0].Status != http.StatusSwitchingProtocols || answers[0].Body != webSocketFrame {
		t.Errorf("the first request of all, an upgrade, was answered %+v", answers[0])
	}
}

// TestAccidentFirstFrameOfTheTerminal: the first frame of a web terminal, its
// size, was lost, since it came in one segment with the handshake. Both sides
// are in a hurry here: the client's frame stands behind its request, and the
// target's behind its 101.
func TestAccidentFirstFrameOfTheTerminal(t *testing.T) {
	const clientFirst, targetFirst = "\x81\x85\x00\x00\x00\x00size!", "\x81\x06banner"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		if _, err := readRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(conn, switchingProtocols+targetFirst)
		frame := make([]byte, len(clientFirst))
		_, _ = io.ReadFull(r, frame)
		got <- string(frame)
		_, _ = io.Copy(io.Discard, r) // until the client closes
	}()
	ours := startCulvert(t, httpBlock(`server { listen {{LISTEN}}; location / { proxy_pass http://`+l.Addr().String()+`;
		proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; } }`), nil)

	conn, err := net.Dial("tcp", ours.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	handshake := strings.TrimSuffix(webSocketRequest("/terminal"), webSocketFrame)
	if _, err := io.WriteString(conn, handshake+clientFirst); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("answer %v, error %v", resp, err)
	}
	banner := make([]byte, len(targetFirst))
	if _, err := io.ReadFull(r, banner); err != nil || string(banner) != targetFirst {
		t.Errorf("the target's first frame arrived as %q, error %v", banner, err)
	}
	select {
	case frame := <-got:
		if frame != clientFirst {
			t.Errorf("the client's first frame arrived as %q", frame)
		}
	case <-time.After(time.Minute):
		t.Error("the client's first frame never arrived")
	}
}

// TestAccidentSticky410Bare: a 410 needs no header to be kept for ever, and
// add_header skips it, so that nginx hands it on as bare as it came. Ours may
// not be kept; what the upstream said about freshness itself stays.
func TestAccidentSticky410Bare(t *testing.T) {
	for name, start := range servers {
		s := newSide(t, start, scenario{conf: httpBlock(source("source.conf"))})
		bare := exchange(t, s.server.address, "", get("/serviceName/410"), "GET")[0]
		fresh := exchange(t, s.server.address, "", get("/serviceName/410-fresh"), "GET")[0]
		cacheControl, expires := "", ""
		if name == "culvert" {
			cacheControl, expires = "private, no-cache", "Thu, 01 Jan 1970 00:00:01 GMT"
		}
		if bare.Status != 410 || first(bare.Fields["Cache-Control"]) != cacheControl || first(bare.Fields["Expires"]) != expires {
			t.Errorf("%s: the bare 410 is %d %q %q", name, bare.Status, bare.Fields["Cache-Control"], bare.Fields["Expires"])
		}
		if fresh.Status != 410 || first(fresh.Fields["Cache-Control"]) != "max-age=60" {
			t.Errorf("%s: the 410 that may be kept for a minute is %d %q", name, fresh.Status, fresh.Fields["Cache-Control"])
		}
	}
}

// servers are the two that are compared.
var servers = map[string]func(*testing.T, string, map[string]string) *server{"nginx": startNginx, "culvert": startCulvert}

// switchingProtocols is the answer to webSocketRequest.
const switchingProtocols = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
