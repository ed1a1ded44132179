package proxy_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

// The same gateway by net/http/httputil and by this package.
func Example_reverseProxy() {
	app := wiretest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "app/1.0")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s of %s for %s", r.URL, r.Host, r.Header.Get("X-Forwarded-Host"))
	}))
	defer app.Close()
	to, _ := url.Parse(app.URL + "/base")

	before := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.SetXForwarded()
			r.Out.Host = "app.internal"
		},
		Transport:     http.DefaultTransport,
		FlushInterval: -1,
		ModifyResponse: func(resp *http.Response) error {
			resp.Header.Del("Server")
			resp.StatusCode = http.StatusOK
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "sorry", http.StatusBadGateway)
		},
		ErrorLog: log.Default(),
	}

	group, err := upstream.New(upstream.Options{Scheme: to.Scheme}, upstream.Target{Addr: to.Host})
	if err != nil {
		log.Fatal(err)
	}
	defer group.Close()
	after, err := proxy.New(proxy.Options{
		Upstream: group,
		Rewrite: func(r *proxy.Outbound) {
			r.AddPrefix(to.Path)
			r.SetXForwarded()
			r.Out.Host = "app.internal"
		},
		FlushInterval: -1,
		ModifyResponse: func(resp *proxy.Response) {
			resp.Header.Del("Server")
			resp.Status = http.StatusOK
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err *culvert.Error) {
			http.Error(w, "sorry", err.Status())
		},
		OnError: func(r *http.Request, err *culvert.Error) { log.Printf("%s: %v", r.URL.Path, err) },
	})
	if err != nil {
		log.Fatal(err)
	}

	for _, handler := range []http.Handler{before, after} {
		gateway := wiretest.NewServer(handler)
		resp, err := http.Get(gateway.URL + "/path?a=1")
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		fmt.Printf("%d %q %t\n", resp.StatusCode, strings.ReplaceAll(string(body), gateway.Listener.Addr().String(), "gateway"), resp.Header["Server"] == nil)
		resp.Body.Close()
		gateway.Close()
	}
	// Output:
	// 200 "/base/path?a=1 of app.internal for gateway" true
	// 200 "/base/path?a=1 of app.internal for gateway" true
}

// The table of the package's documentation has each field of a ReverseProxy, and names nothing that does not exist here.
func TestMigrationTable(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []reflect.Type{reflect.TypeFor[httputil.ReverseProxy](), reflect.TypeFor[httputil.ProxyRequest]()} {
		for i := range v.NumField() {
			if name := v.Field(i).Name; !strings.Contains(string(doc), "\n//\t"+name+" ") && !strings.Contains(string(doc), "\n//\t"+name+",") && !strings.Contains(string(doc), ", "+name+" ") {
				t.Errorf("%s.%s is not in the table", v, name)
			}
		}
	}
	options := reflect.TypeFor[proxy.Options]()
	for _, part := range strings.Split(string(doc), "Options.")[1:] {
		name, _, _ := strings.Cut(strings.FieldsFunc(part, func(r rune) bool { return r != '_' && (r < 'A' || r > 'z') })[0], " ")
		_, own := options.FieldByName(name)
		_, ofGroup := reflect.TypeFor[upstream.Options]().FieldByName(name)
		if !own && !ofGroup {
			t.Errorf("there is no Options.%s", name)
		}
	}
}
