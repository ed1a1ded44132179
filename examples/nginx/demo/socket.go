package demo

import (
	"net/http"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
)

// socket is a WebSocket echo that behaves like Tomcat: the response to anything but a proper
// upgrade is 404. It records the requests that it received, so that the page can show them.
type socket struct {
	upgrader websocket.Upgrader
	mu       sync.Mutex
	received []received
}

// received is one request as it was received.
type received struct {
	URI        string `json:"uri"`
	Upgrade    string `json:"upgrade"`
	Connection string `json:"connection"`
	Status     int    `json:"status"`
}

// maxReceived bounds the recorded requests.
const maxReceived = 64

func newSocket() *socket {
	// The gateway sends its upstream's name as Host, so the page's origin can't
	// match it; this backend listens on loopback and holds nothing.
	return &socket{upgrader: websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}}
}

func (s *socket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/socket/received" {
		s.report(w, r.URL.RawQuery)
		return
	}
	proper := websocket.IsWebSocketUpgrade(r)
	a := received{r.URL.RequestURI(), r.Header.Get("Upgrade"), r.Header.Get("Connection"), http.StatusNotFound}
	if proper {
		a.Status = http.StatusSwitchingProtocols
	}
	s.remember(a)
	if !proper {
		http.Error(w, "404: no such page", http.StatusNotFound)
		return
	}
	conn, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has sent the response
	}
	defer conn.Close()
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil || conn.WriteMessage(kind, message) != nil {
			return
		}
	}
}

func (s *socket) remember(a received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.received) == maxReceived {
		s.received = s.received[1:]
	}
	s.received = append(s.received, a)
}

// report sends the requests of one run of the page.
func (s *socket) report(w http.ResponseWriter, run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []received{}
	for _, a := range s.received {
		if strings.HasSuffix(a.URI, "?"+run) {
			list = append(list, a)
		}
	}
	sendJSON(w, list)
}
