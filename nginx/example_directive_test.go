package nginx_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx"
	"github.com/culvert-go/culvert/nginx/conf"
)

// apiKey is a directive: "api_key KEY...;" lets requests pass that have one of the keys in X-Api-Key, and "api_key off;" all.
var apiKey = nginx.Directive{
	Name:   "api_key",
	Syntax: conf.Syntax{Contexts: conf.InServer | conf.InLocation, MinArgs: 1, MaxArgs: -1},
	Middleware: func(list []nginx.Occurrence) (culvert.Filter, error) {
		keys := map[string]bool{}
		for _, key := range list[0].Args {
			if key == "off" && len(list[0].Args) > 1 {
				return nil, list[0].Errorf("\"off\" stands beside keys in \"api_key\"")
			}
			keys[key] = true
		}
		if keys["off"] {
			return nil, nil
		}
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !keys[r.Header.Get("X-Api-Key")] {
					http.Error(w, "no key", http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r)
			})
		}, nil
	},
}

// A directive of the program's own, whose settings locations inherit and replace.
func ExampleDirective() {
	text := `events {} http { access_log off; server {
		listen 127.0.0.1:8080;
		api_key secret;
		location /private { empty_gif; }
		location /public  { api_key off; empty_gif; }
	} }`
	s, err := nginx.New(nginx.Options{
		File:       "/etc/app/embedded.conf",
		ReadFile:   func(string) ([]byte, error) { return []byte(text), nil },
		Stderr:     io.Discard,
		Directives: []nginx.Directive{apiKey},
	})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	for _, path := range []string{"/private", "/public"} {
		w := httptest.NewRecorder()
		s.Listeners()[0].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Println(path, w.Code)
	}

	text = "events {}\nhttp { server {\n  api_key secret off;\n} }\n"
	fmt.Println(s.Reload())
	// Output:
	// /private 401
	// /public 200
	// "off" stands beside keys in "api_key" in /etc/app/embedded.conf:3
}

// A Go handler in a location, behind the configuration's access control, with its compression and its log.
func ExampleOptions_handlers() {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, _ := nginx.Variable(r, "server_name")
		fmt.Fprintf(w, "hello from %s, by %s", r.URL.Path, server)
	})
	text := `events {} http { access_log off; server {
		listen 127.0.0.1:8080;
		server_name www.example;
		location /api/ { add_header X-From api; culvert_handler hello; }
	} }`
	s, err := nginx.New(nginx.Options{
		File:     "embedded.conf",
		ReadFile: func(string) ([]byte, error) { return []byte(text), nil },
		Stderr:   io.Discard,
		Handlers: map[string]http.Handler{"hello": hello},
	})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	w := httptest.NewRecorder()
	s.Listeners()[0].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://www.example/api/a/../b", nil))
	fmt.Println(w.Code, w.Header().Get("X-From"), w.Body)
	// Output: 200 api hello from /api/b, by www.example
}

// A variable of the program's own, which the configuration uses as nginx's: in header fields, logs, and for upstreams.
func ExampleSetVariable() {
	tenant := nginx.Directive{
		Name:   "tenant_of",
		Syntax: conf.Syntax{MinArgs: 1},
		Middleware: func(list []nginx.Occurrence) (culvert.Filter, error) {
			key, err := list[0].Template(0)
			if err != nil {
				return nil, err
			}
			return func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if err := nginx.SetVariable(r, "tenant", "tenant of "+key(r)); err != nil {
						panic(err)
					}
					next.ServeHTTP(w, r)
				})
			}, nil
		},
	}
	text := `events {} http { access_log off; server {
		listen 127.0.0.1:8080;
		tenant_of $arg_user;
		add_header X-Tenant $tenant;
		location / { empty_gif; }
	} }`
	s, err := nginx.New(nginx.Options{
		File:       "embedded.conf",
		ReadFile:   func(string) ([]byte, error) { return []byte(text), nil },
		Stderr:     io.Discard,
		Directives: []nginx.Directive{tenant},
		Variables:  map[string]func(*http.Request) (string, bool){"tenant": nil},
	})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	w := httptest.NewRecorder()
	s.Listeners()[0].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/a?user=joe", nil))
	fmt.Println(w.Header().Get("X-Tenant"))
	// Output: tenant of joe
}

// A variable whose value is a function's, for a map: what Go knows decides in the configuration.
func ExampleOptions_variables() {
	plans := map[string]string{"ann": "paid", "bob": "free"}
	text := `events {} http { access_log off;
		map $plan $limit { default 10; paid 1000; }
		server { listen 127.0.0.1:8080; add_header X-Limit $limit; location / { empty_gif; } } }`
	s, err := nginx.New(nginx.Options{
		File:     "embedded.conf",
		ReadFile: func(string) ([]byte, error) { return []byte(text), nil },
		Stderr:   io.Discard,
		Variables: map[string]func(*http.Request) (string, bool){
			"plan": func(r *http.Request) (string, bool) {
				user, _ := nginx.Variable(r, "arg_user")
				plan, known := plans[user]
				return plan, known
			},
		},
	})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	for _, user := range []string{"ann", "bob", "eve"} {
		w := httptest.NewRecorder()
		s.Listeners()[0].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?user="+user, nil))
		fmt.Println(user, w.Header().Get("X-Limit"))
	}
	// Output:
	// ann 1000
	// bob 10
	// eve 10
}
