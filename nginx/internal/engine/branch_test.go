package engine_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// The copies of a request that mirror and post_action make have SSI variables and a charset of their own: they run beside it.
func TestCopiesShareNoDocuments(t *testing.T) {
	seen := make(chan string, 2)
	counter := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.RequestURI }))
	defer counter.Close()
	s := serve(t, with(map[string]string{"nginx.conf": `events {} http { charset_map B A { 58 59; } server { root html; ssi on; charset A; source_charset B; types { text/html html; }
		location = /p.html { mirror /q.html; post_action /q.html; }
		location = /seen { proxy_pass ` + counter.URL + `; } } }`},
		"html/p.html", `<!--#set var="a" value="p" --><!--#echo var="a" --><!--#block name="b" -->x<!--#endblock -->`,
		"html/q.html", `<!--#include virtual="/seen?$a" --><!--#set var="a" value="q" --><!--#block name="b" -->y<!--#endblock -->`))
	for range 5 {
		equal(t, "the client's", s.get("/p.html").body, "p")
		equal(t, "a copy's", <-seen, "/seen")
		equal(t, "a copy's", <-seen, "/seen")
	}
}
