package filters_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/culvert-go/culvert/filters"
)

func ExampleResponseLimit() {
	limit, err := filters.ResponseLimit(1 << 20)
	if err != nil {
		panic(err)
	}
	h := filters.NewChain(limit).ThenFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2000000")
		_, _ = w.Write(make([]byte, 2000000))
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	fmt.Println(w.Code, w.Body)
	// Output: 502 Bad Gateway
}
