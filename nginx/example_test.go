package nginx_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/culvert-go/culvert/nginx"
)

// A configuration that is a part of the program, served by a server of the program's own.
func ExampleServer_Listeners() {
	s, err := nginx.New(nginx.Options{
		File: "embedded.conf",
		ReadFile: func(string) ([]byte, error) {
			return []byte(`events {} http { access_log off; server { listen 127.0.0.1:8080; location = /old { return 301 /new; } } }`), nil
		},
		Stderr: io.Discard,
	})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	for _, l := range s.Listeners() {
		w := httptest.NewRecorder()
		l.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://a/old", nil))
		fmt.Println(l.Address, w.Code, w.Header().Get("Location"))
	}
	// Output: 127.0.0.1:8080 301 http://a/new
}
