package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine"
)

// tag is a directive that writes its argument around the path of the request into field Tags, and nothing for "off".
var tag = engine.Directive{
	Name: "tag", Syntax: conf.Syntax{Contexts: conf.InAny, MinArgs: 1}, Repeatable: true,
	Middleware: func(list []engine.Occurrence) (culvert.Filter, error) {
		var texts []func(*http.Request) string
		for i, o := range list {
			if o.Args[0] == "off" {
				return nil, nil
			}
			if o.Args[0] == "wrong" {
				return nil, list[i].Errorf("a wrong tag")
			}
			if o.Args[0] == "bad" {
				return nil, errors.New("a bad tag")
			}
			text, err := o.Template(0)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for _, text := range texts {
					w.Header().Add("Tags", text(r)+"@"+r.URL.Path)
				}
				next.ServeHTTP(w, r)
			})
		}, nil
	},
}

func loadExtended(t *testing.T, o engine.Extensions, files map[string]string) (*site, error) {
	t.Helper()
	return loadWith(t, engine.LoadOptions{Extensions: o}, files)
}

func serveExtended(t *testing.T, o engine.Extensions, files map[string]string) *site {
	t.Helper()
	s, err := loadExtended(t, o, files)
	if err != nil {
		t.Fatal(err)
	}
	s.serve()
	return s
}

// A directive of the program's own is inherited and replaced as nginx's are, and its middleware is around all that serves a request
// behind access control.
func TestDirectives(t *testing.T) {
	s := serveExtended(t, engine.Extensions{Directives: []engine.Directive{tag}}, map[string]string{
		"html/f": "file", "html/if": "if", "html/404.html": "none", "html/d/index.html": "index",
		"nginx.conf": `events {} http { tag http; server { error_page 404 /404.html; error_page 403 /f;
			location / { }
			location /two { tag a; tag $arg_x; try_files /f =404; }
			location /off { tag off; try_files /f =404; }
			location /if { tag a; if ($arg_x) { tag if; } }
			location /inner { location /inner/tag { tag inner; try_files /f =404; } try_files /f =404; }
			location /return { return 204; }
			location /denied { tag denied; deny all; }
			location /rewritten { rewrite ^ /f break; }
			location /other { tag other; error_page 404 /404.html; }
		} }`})
	for path, want := range map[string]string{
		"/f":          "200 http@/f",
		"/a/../%66":   "200 http@/f",
		"/d/":         "200 http@/d/", // and its index, once
		"/two?x=b":    "200 a@/two b@/two",
		"/off":        "200 ",
		"/if":         "200 a@/if",
		"/if?x=1":     "200 if@/if",
		"/inner":      "200 http@/inner",
		"/inner/tag":  "200 inner@/inner/tag",
		"/return":     "204 ",
		"/denied":     "403 http@/f",
		"/rewritten":  "200 http@/f",
		"/none":       "404 http@/none",
		"/other/none": "404 other@/other/none http@/404.html",
	} {
		got := s.get(path)
		equal(t, path, fmt.Sprint(got.StatusCode, " ", strings.Join(got.Header["Tags"], " ")), want)
	}
	equal(t, "an error page", s.get("/none").body, "none")
}

func TestErrorsOfDirectives(t *testing.T) {
	for text, want := range map[string]string{
		"tag;":               `invalid number of arguments in "tag" directive in DIR/nginx.conf:4`,
		"tag a;\ntag bad;":   `a bad tag in "tag" directive in DIR/nginx.conf:4`,
		"tag a;\ntag wrong;": `a wrong tag in DIR/nginx.conf:5`,
		"tag $none;":         `unknown "none" variable in DIR/nginx.conf:4`,
	} {
		files := server(text)
		if _, err := loadExtended(t, engine.Extensions{Directives: []engine.Directive{tag}}, files); err == nil {
			t.Errorf("%q loads", text)
		} else if _, rest, _ := strings.Cut(want, " in DIR"); !strings.HasSuffix(err.Error(), rest) || !strings.HasPrefix(err.Error(), strings.TrimSuffix(want, " in DIR"+rest)) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// What contradicts nginx or itself is an error.
func TestExtensionsAreChecked(t *testing.T) {
	pass := func([]engine.Occurrence) (culvert.Filter, error) { return nil, nil }
	named := func(names ...string) (list []engine.Directive) {
		for _, name := range names {
			list = append(list, engine.Directive{Name: name, Middleware: pass})
		}
		return list
	}
	value := func(*http.Request) (string, bool) { return "", false }
	for want, o := range map[string]engine.Extensions{
		`handler "h" is nil`:                            {Handlers: map[string]http.Handler{"h": nil}},
		`directive "": the name`:                        {Directives: named("")},
		`directive "a b": the name`:                     {Directives: named("a b")},
		`directive "proxy_pass" is one of nginx's`:      {Directives: named("proxy_pass")},
		`directive "image_filter" is one of nginx's`:    {Directives: named("image_filter")},
		`directive "culvert_handler" is one of nginx's`: {Directives: named("culvert_handler")},
		`directive "include" is one of nginx's`:         {Directives: named("include")},
		`directive "a" is there twice`:                  {Directives: named("a", "b", "a")},
		`directive "a": Middleware is nil`:              {Directives: []engine.Directive{{Name: "a"}}},
		`directive "a": unknown context`:                {Directives: []engine.Directive{{Name: "a", Middleware: pass, Syntax: conf.Syntax{Contexts: 64}}}},
		`variable "A": the name`:                        {Variables: map[string]func(*http.Request) (string, bool){"A": value}},
		`variable "uri" is one of nginx's`:              {Variables: map[string]func(*http.Request) (string, bool){"uri": value}},
		`variable "http_a" is one of nginx's`:           {Variables: map[string]func(*http.Request) (string, bool){"http_a": nil}},
	} {
		if _, err := loadExtended(t, o, server("")); err == nil || !strings.HasPrefix(err.Error(), "nginx: "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// hands is a handler that writes what it was called with.
var shows = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	fmt.Fprint(w, r.Method, " ", r.URL.Path, " ", r.URL.RawPath, " ", r.URL.RawQuery, " ", r.RequestURI, " ", string(body), " ", r.Context().Value(contextKey{}))
})

type contextKey struct{}

func TestHandlers(t *testing.T) {
	handlers := map[string]http.Handler{
		"shows":  shows,
		"none":   http.NotFoundHandler(),
		"silent": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
		"early":  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Lost", "1"); panic("early") }),
	}
	s := serveExtended(t, engine.Extensions{Handlers: handlers}, map[string]string{"html/f": "file", "nginx.conf": `events {} http {
		gzip on; gzip_types *; gzip_min_length 1; client_max_body_size 10; server {
			error_page 404 500 /f;
			location / { }
			location /shows/ { culvert_handler shows; add_header X-Here $uri; }
			location ~ ^/inner/(.*) { rewrite ^/inner(.*)$ $1?b=2 break; culvert_handler shows; }
			location = /none { culvert_handler none; }
			location = /silent { culvert_handler silent; }
			location = /early { culvert_handler early; }
			location = /limited { culvert_handler shows; limit_except GET { deny all; } }
			location = /if { culvert_handler none; if ($arg_x) { culvert_handler shows; } if ($arg_y) { set $z 1; } }
			location @named { culvert_handler shows; }
			location = /named { try_files /x @named; }
			location = /auth { auth_request /silent; culvert_handler shows; }
		} }`})
	for path, want := range map[string]string{
		"/shows/a/./b%2Fc//d?q=1": "200 GET /shows/a/b/c/d  q=1 /shows/a/./b%2Fc//d?q=1  <nil>",
		"/shows/b%2Fc?q=1":        "200 GET /shows/b/c /shows/b%2Fc q=1 /shows/b%2Fc?q=1  <nil>",
		"/shows/%C3%A9":           "200 GET /shows/é  " + " /shows/%C3%A9  <nil>",
		"/inner/x?a=1":            "200 GET /x  b=2&a=1 /inner/x?a=1  <nil>",
		"/shows":                  "301 ",
		"/none":                   "404 404 page not found\n",
		"/silent":                 "200 ",
		"/early":                  "500 file",
		"/limited":                "200 GET /limited   /limited  <nil>",
		"/if":                     "404 404 page not found\n",
		"/if?x=1":                 "200 GET /if  x=1 /if?x=1  <nil>",
		"/if?y=1":                 "404 404 page not found\n",
		"/named":                  "200 GET /named   /named  <nil>",
		"/auth":                   "200 GET /auth   /auth  <nil>",
	} {
		got := s.get(path)
		if got.StatusCode == http.StatusMovedPermanently {
			got.body = ""
		}
		equal(t, path, fmt.Sprint(got.StatusCode, " ", got.body), want)
	}
	if got := s.get("/early"); got.Header.Get("X-Lost") != "" || !strings.Contains(s.errors.String(), `[alert]`) || !strings.Contains(s.errors.String(), `handler "early" has panicked: early`) {
		t.Errorf("%v, logged: %s", got.Header, s.errors.String())
	}
	if got := s.get("/shows/", "Accept-Encoding: gzip"); got.Header.Get("Content-Encoding") != "gzip" || got.Header.Get("X-Here") != "/shows/" {
		t.Error(got.Header)
	}
	equal(t, "another method", s.request("POST", "/limited").StatusCode, 403)
	equal(t, "a long body", s.request("POST", "/shows/", "Content-Length: 11").StatusCode, 413)
	long := s.send("POST /shows/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n")
	equal(t, "a long chunked body", long.StatusCode, 413)
	short := s.send("POST /shows/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
	equal(t, "a body", short.body, "POST /shows/   /shows/ hello <nil>")
}

// A response that a handler leaves by a panic does not look complete.
func TestHandlerPanicsLate(t *testing.T) {
	late := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic("late")
	})
	s := serveExtended(t, engine.Extensions{Handlers: map[string]http.Handler{"late": late}}, server("location / { culvert_handler late; }"))
	resp, err := http.Get("http://" + s.first)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil || string(body) != "half" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestErrorsOfHandlers(t *testing.T) {
	handlers := map[string]http.Handler{"shows": shows}
	for text, want := range map[string]string{
		"location / { culvert_handler nobody; }":                                `unknown handler "nobody" in "culvert_handler" directive: the program has registered none of this name in `,
		"location / { culvert_handler shows; proxy_pass http://127.0.0.1:1; }":  `"culvert_handler" and "proxy_pass" exclude each other in a location in `,
		"location / { proxy_pass http://127.0.0.1:1;\nculvert_handler shows; }": `"culvert_handler" and "proxy_pass" exclude each other in a location in `,
		"culvert_handler shows;":                                                `"culvert_handler" directive is not allowed here in `,
		"location / { culvert_handler shows; culvert_handler shows; }":          `"culvert_handler" directive is duplicate in `,
	} {
		if _, err := loadExtended(t, engine.Extensions{Handlers: handlers}, server(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// What a middleware passes on is served: its header, method, body and context, and its path as one that was rewritten.
func TestMiddlewarePassesOn(t *testing.T) {
	change := engine.Directive{Name: "change", Middleware: func([]engine.Occurrence) (culvert.Filter, error) {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r = r.Clone(context.WithValue(r.Context(), contextKey{}, "in context"))
				r.Header.Set("X-Changed", "yes")
				r.Method, r.Body, r.ContentLength = http.MethodPut, io.NopCloser(strings.NewReader("other")), 5
				http.StripPrefix("/strip", next).ServeHTTP(w, r)
			})
		}, nil
	}}
	s := serveExtended(t, engine.Extensions{Directives: []engine.Directive{change}, Handlers: map[string]http.Handler{"shows": shows}},
		map[string]string{"a.log": "", "nginx.conf": `events {} http { log_format l '$request_method $http_x_changed $uri'; access_log a.log l; server {
			change;
			location /strip { culvert_handler shows; add_header X-Seen $http_x_changed; }
		} }`})
	equal(t, "the request", s.get("/strip/a?q").body, "PUT /a  q /strip/a?q other in context")
	equal(t, "a path that leads out", s.get("/strip../a").StatusCode, 400)
	equal(t, "no prefix", s.get("/none").StatusCode, 404)
	equal(t, "the log", strings.Split(s.file("a.log"), "\n")[0], "GET - /a")
}

// A middleware that panics before the header has the page of a 500, and one that continues behind its end serves nothing.
func TestMiddlewareMisbehaves(t *testing.T) {
	var later func()
	bad := engine.Directive{Name: "bad", Syntax: conf.Syntax{MinArgs: 1}, Middleware: func(list []engine.Occurrence) (culvert.Filter, error) {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch list[0].Args[0] {
				case "panics":
					panic("a bug")
				case "context":
					next.ServeHTTP(w, r.WithContext(context.Background()))
				case "later":
					later = func() { next.ServeHTTP(w, r) }
				case "goroutine":
					done := make(chan struct{})
					go func() {
						defer close(done)
						next.ServeHTTP(w, r)
					}()
					<-done
				}
			})
		}, nil
	}}
	s := serveExtended(t, engine.Extensions{Directives: []engine.Directive{bad}}, map[string]string{"html/f": "file", "nginx.conf": `events {} http { server {
			error_page 500 /f;
			location / {}
			location = /panics { bad panics; }
			location = /context { bad context; }
			location = /later { bad later; try_files /f =404; }
			location = /goroutine { bad goroutine; try_files /f =404; }
		} }`})
	for path, want := range map[string]string{"/panics": "500 file", "/context": "500 file", "/later": "200 ", "/goroutine": "200 file"} {
		got := s.get(path)
		equal(t, path, fmt.Sprint(got.StatusCode, " ", got.body), want)
	}
	for _, want := range []string{"directive \"bad\" has panicked: a bug", "the context of the request that the middleware has passed on"} {
		if !strings.Contains(s.errors.String(), want) {
			t.Errorf("not logged: %s", want)
		}
	}
	later()
}

// Variables of the program's own are evaluated in each phase, and are set by middleware.
func TestVariablesOfPrograms(t *testing.T) {
	variables := map[string]func(*http.Request) (string, bool){
		"length": func(r *http.Request) (string, bool) { return fmt.Sprint(len(r.URL.Path)), r.URL.Path != "/none" },
		"broken": func(*http.Request) (string, bool) { panic("a bug") },
		"set":    nil,
	}
	sets := engine.Directive{Name: "sets", Middleware: func([]engine.Occurrence) (culvert.Filter, error) {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for _, name := range []string{"set", "Configured"} {
					if err := engine.SetVariable(r, name, "by middleware"); err != nil {
						t.Error(err)
					}
				}
				for _, name := range []string{"uri", "length", "nothing"} {
					if engine.SetVariable(r, name, "x") == nil {
						t.Errorf("%s can be set", name)
					}
				}
				value, found := engine.Variable(r, "Length")
				nothing, has := engine.Variable(r, "nothing")
				w.Header().Set("X-Read", fmt.Sprint(value, found, nothing, has))
				next.ServeHTTP(w, r)
			})
		}, nil
	}}
	s := serveExtended(t, engine.Extensions{Directives: []engine.Directive{sets}, Variables: variables}, map[string]string{
		"html/f": "file", "nginx.conf": `events {} http { log_format l '$uri $length $broken $set $configured'; access_log a.log l;
		map $length $long { default 0; ~^.. 1; }
		server {
			set $configured before;
			if ($long) { return 414; }
			location / { add_header X-Set $set; }
			location = /f { sets; add_header X-Set $set; }
		} }`})
	equal(t, "a long path", s.get("/long/path/").StatusCode, 414)
	got := s.get("/f")
	equal(t, "read", got.Header.Get("X-Read"), "2truefalse")
	equal(t, "set", got.Header.Get("X-Set"), "by middleware")
	s.get("/none")
	equal(t, "log", s.file("a.log"), "/long/path/ 11 - - before\n/f 2 - by middleware by middleware\n/none - - - before\n")
	if !strings.Contains(s.errors.String(), `the function of variable "$broken" has panicked: a bug`) {
		t.Error(s.errors.String())
	}
	outside, _ := http.NewRequest("GET", "http://a/", nil)
	if value, found := engine.Variable(outside, "uri"); found || engine.SetVariable(outside, "set", "x") == nil {
		t.Errorf("a request from outside has %q", value)
	}
}

// The type of a handler's content is guessed as by net/http's server, in time for what goes by it.
func TestTypesOfHandlers(t *testing.T) {
	write := func(status int, typed string, pieces ...string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if typed != "" {
				w.Header()["Content-Type"] = strings.Fields(typed)
			}
			if status != 0 {
				w.WriteHeader(status)
			}
			for _, piece := range pieces {
				if piece == "flush" {
					_ = http.NewResponseController(w).Flush()
				} else if _, err := io.Copy(w, struct{ io.Reader }{strings.NewReader(piece)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	long := "<html>" + strings.Repeat("x", 1000)
	handlers := map[string]http.Handler{
		"guessed": write(0, "", "<html>", "rest"), "status": write(404, "", "<html>"), "own": write(404, "text/a", "<html>"), "none": write(0, " ", "<html>"),
		"flushed": write(201, "", "flush", "<html>"), "empty": write(202, ""), "nothing": write(204, ""), "long": write(0, "", long, long),
	}
	text := "events {} http { gzip on; gzip_min_length 1; server {\n"
	for name := range handlers {
		text += "location /" + name + " { culvert_handler " + name + "; }\n"
	}
	s := serveExtended(t, engine.Extensions{Handlers: handlers}, map[string]string{"nginx.conf": text + "} }"})
	for name, want := range map[string]string{
		"guessed": "200 text/html; charset=utf-8 gzip", "status": "404 text/html; charset=utf-8 gzip", "own": "404 text/a ", "none": "200  ",
		"flushed": "201  ", "empty": "202  ", "nothing": "204  ", "long": "200 text/html; charset=utf-8 gzip",
	} {
		got := s.get("/"+name, "Accept-Encoding: gzip")
		equal(t, name, fmt.Sprint(got.StatusCode, " ", got.Header.Get("Content-Type"), " ", got.Header.Get("Content-Encoding")), want)
	}
	equal(t, "a long body", s.get("/long").body, long+long)
}

// A middleware may pass a writer of its own on: one that is nothing but an http.ResponseWriter, or one that keeps the response.
func TestMiddlewareWrapsWriters(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "proxied") }))
	defer target.Close()
	wrap := func(list []engine.Occurrence) (culvert.Filter, error) {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if list[0].Args[0] == "plain" {
					next.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
					return
				}
				kept := httptest.NewRecorder()
				next.ServeHTTP(kept, r)
				maps.Copy(w.Header(), kept.Header())
				w.Header().Del("Content-Length")
				w.WriteHeader(kept.Code)
				fmt.Fprint(w, strings.ToUpper(kept.Body.String()))
			})
		}, nil
	}
	long := strings.Repeat("long ", 20000)
	s := serveExtended(t, engine.Extensions{
		Directives: []engine.Directive{{Name: "wrap", Syntax: conf.Syntax{MinArgs: 1}, Middleware: wrap}},
		Handlers:   map[string]http.Handler{"handler": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "handler") })},
	}, map[string]string{
		"html/plain/f": "file", "html/kept/f": "file", "html/plain/long": long, "html/kept/long": long, "html/none": "none", "html/plain/index.html": "index", "html/kept/index.html": "index",
		"nginx.conf": `events {} http { gzip on; gzip_types *; error_page 404 /none; server { location = /none { }
			location /plain/ { wrap plain; location /plain/proxied { proxy_pass ` + target.URL + `; } location /plain/handler { culvert_handler handler; } }
			location /kept/ { wrap kept; location /kept/proxied { proxy_pass ` + target.URL + `; } location /kept/handler { culvert_handler handler; } }
		} }`})
	for path, want := range map[string]string{"f": "200 file", "long": "200 " + long, "": "200 index", "missing": "404 none", "proxied": "200 proxied", "handler": "200 handler"} {
		got := s.get("/plain/" + path)
		equal(t, "plain "+path, fmt.Sprint(got.StatusCode, " ", got.body), want)
		got = s.get("/kept/" + path)
		equal(t, "kept "+path, fmt.Sprint(got.StatusCode, " ", got.body), strings.ToUpper(want))
	}
	equal(t, "HEAD", s.request("HEAD", "/kept/f").StatusCode, 200)
	equal(t, "compressed", s.get("/kept/long", "Accept-Encoding: gzip").Header.Get("Content-Encoding"), "gzip")
	if log := s.errors.String(); strings.Contains(log, "panicked") {
		t.Error(log)
	}
}

// The memory of a request that a function of the program's has had is not used again: it may have kept the request.
func TestProgramsHold(t *testing.T) {
	pass := func([]engine.Occurrence) (culvert.Filter, error) {
		return func(next http.Handler) http.Handler { return next }, nil
	}
	s, err := loadExtended(t, engine.Extensions{
		Handlers:   map[string]http.Handler{"shows": shows},
		Directives: []engine.Directive{{Name: "through", Middleware: pass}},
		Variables:  map[string]func(*http.Request) (string, bool){"own": func(*http.Request) (string, bool) { return "", true }},
	}, with(server(`location / { } location /handler { culvert_handler shows; } location /through { through; empty_gif; } location /own { return 200 $own; }`), "html/f", "file"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"/f": false, "/handler": true, "/through": true, "/own": true} {
		holds := 0
		s.engine.Listeners()[0].Handler.ServeHTTP(lender{httptest.NewRecorder(), &holds}, httptest.NewRequest("GET", path, nil))
		if (holds > 0) != want {
			t.Errorf("%s is held: %v", path, !want)
		}
	}
}

// client_body_timeout bounds what a handler and a middleware read, and the connection ends with a body that is not received. The time
// of a body that a middleware has left or changed, and passed on, is bounded once more by what serves it.
func TestProgramsBodyTimeout(t *testing.T) {
	read := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, string(body), " ", errors.Is(err, os.ErrDeadlineExceeded))
	}
	filter := func(name string, serve func(w http.ResponseWriter, r *http.Request, next http.Handler)) engine.Directive {
		return engine.Directive{Name: name, Middleware: func([]engine.Occurrence) (culvert.Filter, error) {
			return func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, next) })
			}, nil
		}}
	}
	s := serveExtended(t, engine.Extensions{
		Handlers: map[string]http.Handler{"read": http.HandlerFunc(read)},
		Directives: []engine.Directive{
			filter("reads", func(w http.ResponseWriter, r *http.Request, _ http.Handler) { read(w, r) }),
			filter("wraps", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				r.Body = struct{ io.ReadCloser }{r.Body}
				next.ServeHTTP(w, r)
			}),
			filter("begins", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				_, _ = io.ReadFull(r.Body, make([]byte, 1))
				next.ServeHTTP(w, r)
			}),
		},
	}, server(`client_body_timeout 20ms; location /handler { culvert_handler read; } location /reads { reads; }
		location /wraps { wraps; culvert_handler read; } location /begins { begins; culvert_handler read; }`))
	const body = " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel"
	for path, want := range map[string]string{"/handler": "hel true", "/reads": "hel true", "/wraps": "hel true", "/begins": "el true"} {
		got := s.send("POST " + path + body)
		equal(t, path, got.body, want)
		equal(t, path+": the connection is closed", got.Close, true)
		equal(t, path+" in time", s.send("POST "+path+body+"lo").body, strings.TrimSuffix(want, " true")+"lo false")
	}
}

// The body that a middleware has put in the place of another is what an upstream gets, also if that was read for another upstream
// before, and in the location of an error page.
func TestMiddlewareReplacesBody(t *testing.T) {
	change := engine.Directive{Name: "change", Syntax: conf.Syntax{MinArgs: 1}, Middleware: func(list []engine.Occurrence) (culvert.Filter, error) {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch list[0].Args[0] {
				case "other":
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader("others")), 6
				case "upper":
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					r.Body = io.NopCloser(strings.NewReader(strings.ToUpper(string(body))))
				}
				next.ServeHTTP(w, r)
			})
		}, nil
	}}
	up := echo(t)
	s := serveExtended(t, engine.Extensions{Directives: []engine.Directive{change}}, map[string]string{"a.log": "", "nginx.conf": strings.ReplaceAll(`events {} http {
		log_format l '$request_body'; access_log a.log l; server {
			location / { proxy_pass http://127.0.0.1:1; }
			location /other { error_page 502 = @other; proxy_pass http://127.0.0.1:1; }
			location @other { change other; proxy_pass http://UP; }
			location /upper { error_page 502 = @upper; proxy_pass http://127.0.0.1:1; }
			location @upper { change upper; proxy_pass http://UP; }
			location /same { error_page 502 = @same; proxy_pass http://127.0.0.1:1; }
			location @same { change none; proxy_pass http://UP; }
			location /first { error_page 502 = @plain; change other; proxy_pass http://127.0.0.1:1; }
			location @plain { proxy_pass http://UP; }
			location /twice { error_page 502 = @upper; change other; proxy_pass http://127.0.0.1:1; }
		} }`, "UP", up)})
	logged := ""
	for _, test := range []struct{ path, want, logged string }{
		{"/other", "others", "body"}, {"/upper", "BODY", "body"}, {"/same", "body", "body"}, {"/first", "others", "others"},
		{"/twice", "OTHERS", "others"},
	} {
		got := s.send("POST " + test.path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody")
		content := got.body[max(0, strings.LastIndex(got.body, "] ")+1):]
		equal(t, test.path, fmt.Sprintf("%d %s", got.StatusCode, strings.TrimLeft(content, " ")), "200 "+test.want)
		line := eventually(t, func() string { return strings.TrimSpace(strings.TrimPrefix(s.file("a.log"), logged)) })
		logged += line + "\n"
		equal(t, test.path+" in the log", line, test.logged)
	}
}
