package cachectl_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/culvert-go/culvert/cachectl"
)

func TestMatches(t *testing.T) {
	r := &cachectl.Response{
		Request: httptest.NewRequest("POST", "/assets/img/a%20b.PNG?x=.css", nil),
		Status:  404,
		Header:  http.Header{"Content-Type": {"Text/HTML; charset=utf-8"}, "X-Empty": {""}},
	}
	yes, no := cachectl.Any(), cachectl.Not(cachectl.Any())
	tests := []struct {
		name  string
		match cachectl.Match
		want  bool
	}{
		{"Any", yes, true},
		{"Not", no, false},
		{"Status", cachectl.Status(410, 404), true},
		{"another Status", cachectl.Status(200), false},
		{"Class", cachectl.Class(4, 5), true},
		{"another Class", cachectl.Class(2), false},
		{"Method", cachectl.Method("GET", "POST"), true},
		{"another Method", cachectl.Method("GET"), false},
		{"Path", cachectl.Path("/assets/img/a b.*"), true},
		{"Path stops at slashes", cachectl.Path("/assets/*"), false},
		{"everything below", cachectl.Path("/assets/**"), true},
		{"everything below is not the folder's namesake", cachectl.Path("/asset/**"), false},
		{"a malformed Path", cachectl.Path("/assets/[/**x"), false},
		{"Extension", cachectl.Extension(".css", ".png"), true},
		{"the query's extension", cachectl.Extension(".css"), false},
		{"ContentType", cachectl.ContentType("text/html"), true},
		{"a class of ContentType", cachectl.ContentType("image/*", "text/*"), true},
		{"another ContentType", cachectl.ContentType("text/htm"), false},
		{"Has", cachectl.Has("x-empty"), true},
		{"Has not", cachectl.Has("X-None"), false},
		{"And", cachectl.And(yes, yes), true},
		{"And with one that does not", cachectl.And(yes, no), false},
		{"And of none", cachectl.And(), true},
		{"Or", cachectl.Or(no, yes), true},
		{"Or of none", cachectl.Or(), false},
	}
	for _, test := range tests {
		if got := test.match(r); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// A response without a request is matched as one to a GET of "/".
func TestMatchesWithoutRequest(t *testing.T) {
	r := &cachectl.Response{Status: 200, Header: http.Header{}}
	if !cachectl.Method("GET")(r) || cachectl.Method("POST")(r) || !cachectl.Path("/")(r) || cachectl.Extension(".css")(r) || cachectl.ContentType("text/*")(r) {
		t.Error("a nil Request is not treated as a GET of /")
	}
}

// Not, And and Or panic if they are called with a nil Match.
func TestNilMatch(t *testing.T) {
	for want, make := range map[string]func(){
		"cachectl: Not: match 0 is nil": func() { cachectl.Not(nil) },
		"cachectl: And: match 1 is nil": func() { cachectl.And(cachectl.Any(), nil) },
		"cachectl: Or: match 0 is nil":  func() { cachectl.Or(nil) },
	} {
		func() {
			defer func() {
				if v := recover(); v != want {
					t.Errorf("a panic with %v, want %s", v, want)
				}
			}()
			make()
		}()
	}
}
