package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert/server"
	"github.com/culvert-go/culvert/watchcodec/remotecommand"
)

// demo is an API server that has only exec. Its shell knows a few words.
type demo struct {
	url    string
	server *server.Server
}

func startDemo() (*demo, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/default/pods/demo/exec", serveShell)
	d := &demo{url: "http://" + l.Addr().String(), server: &server.Server{Handler: mux, ReadHeaderTimeout: time.Minute}}
	go func() { _ = d.server.Serve(l) }()
	return d, nil
}

func (d *demo) close() { d.server.Close() }

func serveShell(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{
		Subprotocols: []string{string(remotecommand.V4)},
		CheckOrigin:  func(*http.Request) bool { return true }, // the gateway in front has checked it
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	s := &shell{conn: conn}
	for !s.ended {
		kind, message, err := conn.ReadMessage()
		if err != nil {
			return
		}
		m, err := remotecommand.V4.Decode(kind == websocket.TextMessage, message)
		if err != nil {
			continue // like a real server, without a message
		}
		s.take(m)
	}
	_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
}

// shell is a session.
type shell struct {
	conn  *websocket.Conn
	size  remotecommand.Size
	line  []byte
	ended bool
}

func (s *shell) take(m remotecommand.Message) {
	switch m.Channel {
	case remotecommand.Resize:
		size, err := remotecommand.ParseSize(m.Data)
		if err != nil {
			return
		}
		first := s.size == remotecommand.Size{}
		if s.size = size; first {
			s.print("\x1b[32mculvert\x1b[0m: try \"size\", \"colors\", \"exit 7\"\r\n")
			s.prompt()
		}
	case remotecommand.Stdin:
		for _, c := range m.Data {
			s.key(c)
		}
	}
}

func (s *shell) key(c byte) {
	switch {
	case c == '\r':
		s.print("\r\n")
		s.run(strings.TrimSpace(string(s.line)))
		s.line = nil
		if !s.ended {
			s.prompt()
		}
	case c == 0x7f && len(s.line) > 0:
		s.line = s.line[:len(s.line)-1]
		s.print("\b \b")
	case c >= ' ' && c != 0x7f:
		s.line = append(s.line, c)
		s.print(string(c))
	}
}

func (s *shell) run(line string) {
	code := 0
	switch _, err := fmt.Sscanf(line, "exit %d", &code); {
	case line == "":
	case line == "size":
		s.print(fmt.Sprintf("%d columns, %d rows\r\n", s.size.Width, s.size.Height))
	case line == "colors":
		for i := range 16 {
			s.print(fmt.Sprintf("\x1b[48;5;%dm  ", i))
		}
		s.print("\x1b[0m\r\n")
	case line == "exit" || err == nil:
		s.exit(code)
	default:
		s.print(line + ": not found\r\n")
	}
}

func (s *shell) prompt() { s.print(fmt.Sprintf("%dx%d $ ", s.size.Width, s.size.Height)) }

// exit reports the status as remotecommand.NewErrorWriter does.
func (s *shell) exit(code int) {
	s.ended = true
	status := `{"status":"Success"}`
	if code != 0 {
		status = fmt.Sprintf(`{"status":"Failure","reason":"NonZeroExitCode","message":"exit code %d","details":{"causes":[{"reason":"ExitCode","message":"%d"}]}}`, code, code)
	}
	s.send(remotecommand.Message{Channel: remotecommand.Error, Data: []byte(status)})
}

func (s *shell) print(text string) {
	s.send(remotecommand.Message{Channel: remotecommand.Stdout, Data: []byte(text)})
}

func (s *shell) send(m remotecommand.Message) {
	b, err := remotecommand.V4.Append(nil, m)
	if err == nil {
		_ = s.conn.WriteMessage(websocket.BinaryMessage, b)
	}
}
