package nginx_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/conf"
)

// A Reload keeps the handlers and makes the middleware anew, and Check and Notes know the program's directives.
func TestExtensionsSurviveReload(t *testing.T) {
	text := ""
	conf := func(value, more string) {
		text = "events {}\nhttp { access_log off; server { listen 127.0.0.1:8080;\nlocation / { mark " + value + "; culvert_handler hello; }\n" + more + "\n} }\n"
	}
	made := 0
	o := nginx.Options{
		File: "/f", Stderr: io.Discard, ReadFile: func(string) ([]byte, error) { return []byte(text), nil },
		Handlers: map[string]http.Handler{"hello": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })},
		Directives: []nginx.Directive{{Name: "mark", Syntax: one, Middleware: func(list []nginx.Occurrence) (culvert.Filter, error) {
			made++
			return func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Mark", list[0].Args[0])
					next.ServeHTTP(w, r)
				})
			}, nil
		}}},
	}
	conf("first", "")
	s, err := nginx.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	get := func() string {
		w := httptest.NewRecorder()
		s.Listeners()[0].Handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Header().Get("Mark") + " " + w.Body.String()
	}
	if got := get(); got != "first hello" || made != 1 {
		t.Errorf("%s, made %d times", got, made)
	}
	conf("second", "")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := get(); got != "second hello" || made != 2 {
		t.Errorf("%s, made %d times", got, made)
	}
	conf("third", "location /x { mark; }\nlocation /y { culvert_handler none; }")
	if err := s.Reload(); err == nil || get() != "second hello" {
		t.Errorf("%v, then %s", err, get())
	}
	var texts []string
	for _, err := range nginx.Check(o) {
		texts = append(texts, err.Error())
	}
	if got := strings.Join(texts, "\n"); got != `invalid number of arguments in "mark" directive in /f:4
unknown handler "none" in "culvert_handler" directive: the program has registered none of this name in /f:5` {
		t.Error(got)
	}
	conf("fourth", "")
	found := ""
	for _, n := range nginx.Notes(o) {
		if n.Directive == "mark" || n.Directive == "culvert_handler" {
			found += n.String() + "\n"
		}
	}
	if found != "\"mark\" is implemented in /f:3\n\"culvert_handler\" is implemented in /f:3\n" {
		t.Error(found)
	}
}

var one = conf.Syntax{MinArgs: 1}

// A handler may take the connection over: a WebSocket goes through filters and middleware of the location.
func TestHandlerUpgrades(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		kind, message, err := conn.ReadMessage()
		if err == nil {
			err = conn.WriteMessage(kind, message)
		}
		if err != nil {
			t.Error(err)
		}
	})
	pass := nginx.Directive{Name: "through", Middleware: func([]nginx.Occurrence) (culvert.Filter, error) {
		return func(next http.Handler) http.Handler { return next }, nil
	}}
	s, err := nginx.New(nginx.Options{
		File: "/f", Stderr: io.Discard, Handlers: map[string]http.Handler{"echo": echo}, Directives: []nginx.Directive{pass},
		ReadFile: func(string) ([]byte, error) {
			return []byte("events {} http { access_log off; gzip on; sub_filter a b; server { listen 127.0.0.1:8080; through; location / { culvert_handler echo; } } }"), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server := httptest.NewServer(s.Listeners()[0].Handler)
	defer server.Close()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, message, err := conn.ReadMessage(); err != nil || string(message) != "hello" {
		t.Errorf("%q, %v", message, err)
	}
}
