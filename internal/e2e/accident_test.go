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

// The incidents that this project comes from, each on real sockets: the tests say what must be received, and
// do not compare alone.

// TestAccidentNginx404WithoutUpgrade: the WebSocket behind nginx got a 404, since the configuration did not forward Upgrade.
// Culvert does what the file says, either way, and so did nginx.
func TestAccidentNginx404WithoutUpgrade(t *testing.T) {
	for file, want := range map[string]int{"source.conf": 101, "source_without_upgrade.conf": 404} {
		webSocket := func(start starter) response {
			s := newSide(t, start, scenario{conf: httpBlock(source(file))})
			return exchange(t, s.server.address, "", webSocketRequest("/serviceName/ws"), "GET")[0]
		}
		ours := webSocket(startCulvert)
		if ours.Status != want {
			t.Errorf("%s: status %d, want %d", file, ours.Status, want)
		}
		if want == 101 && ours.Body != webSocketFrame {
			t.Errorf("%s: the frame came back as %q", file, ours.Body)
		}
		fact(t, "nginx's status with "+file, webSocket(startNginx).Status, want)
	}
}

// TestAccidentWebpackWarmUp: a development proxy accepted upgrades only after a first plain
// request. Here the upgrade is the first request that the process receives.
func TestAccidentWebpackWarmUp(t *testing.T) {
	s := newSide(t, startCulvert, scenario{conf: httpBlock(source("source.conf"))})
	responses := exchange(t, s.server.address, "", webSocketRequest("/serviceName/ws"), "GET")
	if responses[0].Status != http.StatusSwitchingProtocols || responses[0].Body != webSocketFrame {
		t.Errorf("the first request of all, an upgrade, got %+v", responses[0])
	}
}

// TestAccidentFirstFrameOfTheTerminal: the first frame of a web terminal, its
// size, was lost, since it was received in one segment with the handshake. Here each
// side sends its first frame in one piece with its header.
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
		t.Fatalf("response %v, error %v", resp, err)
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

// TestAccidentSticky410Bare: caches keep a 410 that has no header about them, and nginx's add_header skips that status, so that
// nginx sends it as bare as it received it. Culvert's may not be kept; what the upstream said about freshness is kept.
func TestAccidentSticky410Bare(t *testing.T) {
	gone := func(start starter) (bare, fresh response) {
		s := newSide(t, start, scenario{conf: httpBlock(source("source.conf"))})
		return exchange(t, s.server.address, "", get("/serviceName/410"), "GET")[0], exchange(t, s.server.address, "", get("/serviceName/410-fresh"), "GET")[0]
	}
	bare, fresh := gone(startCulvert)
	if bare.Status != 410 || first(bare.Fields["Cache-Control"]) != "private, no-cache" || first(bare.Fields["Expires"]) != "Thu, 01 Jan 1970 00:00:01 GMT" {
		t.Errorf("the bare 410 is %d %q %q", bare.Status, bare.Fields["Cache-Control"], bare.Fields["Expires"])
	}
	if fresh.Status != 410 || first(fresh.Fields["Cache-Control"]) != "max-age=60" {
		t.Errorf("the 410 that may be kept for a minute is %d %q", fresh.Status, fresh.Fields["Cache-Control"])
	}
	bare, _ = gone(startNginx)
	fact(t, "Cache-Control of a 410 through nginx", first(bare.Fields["Cache-Control"]), "")
}

// switchingProtocols is the response to webSocketRequest.
const switchingProtocols = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
