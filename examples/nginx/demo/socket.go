package demo

import (
	"net/http"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
)

// socket is a WebSocket echo that does as Tomcat does: what is not a proper
// upgrade is 404. It remembers what it was asked, so that the page can show it.
type socket struct {
	upgrader websocket.Upgrader
	mu       sync.Mutex
	asked    []asked
}

// asked is what one request looked like when it got here.
type asked struct {
	URI        string `json:"uri"`
	Upgrade    string `json:"upgrade"`
	Connection string `json:"connection"`
	Status     int    `json:"status"`
}

// maxAsked bounds the memory of what was asked.
const maxAsked = 64

func newSocket() *socket {
	// The gateway sends its upstream's name as Host, so the page's origin can't
	// match it; this backend listens on loopback and holds nothing.
	return &socket{upgrader: websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}}
}

func (s *socket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/socket/asked" {
		s.report(w, r.URL.RawQuery)
		return
	}
	proper := websocket.IsWebSocketUpgrade(r)
	a := asked{r.URL.RequestURI(), r.Header.Get("Upgrade"), r.Header.Get("Connection"), http.StatusNotFound}
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
		return // Upgrade has answered
	}
	defer conn.Close()
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil || conn.WriteMessage(kind, message) != nil {
			return
		}
	}
}

func (s *socket) remember(a asked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) == maxAsked {
		s.asked = s.asked[1:]
	}
	s.asked = append(s.asked, a)
}

// report answers with what was asked in one run of the page.
func (s *socket) report(w http.ResponseWriter, run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []asked{}
	for _, a := range s.asked {
		if strings.HasSuffix(a.URI, "?"+run) {
			list = append(list, a)
		}
	}
	answer(w, list)
}
