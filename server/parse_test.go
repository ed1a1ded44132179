package server

import (
	"net/http"
	"net/url"
	"reflect"
	"testing"
)

// FuzzParsePath compares what is parsed here with net/url.
func FuzzParsePath(f *testing.F) {
	for _, target := range []string{"/", "/a/b?c=d", "/a?", "/a??", "/a?b?", "//a/b", "/%41", "/a b", "/a%zz", "*", "http://a/b", "/ä", "/a;b=c,d", "/a?%zz", "/[", "/!", "/'", "/a#b", "/?\"<"} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		for i := range len(target) {
			if target[i] <= ' ' || target[i] == 0x7f {
				return // never gets here
			}
		}
		var got url.URL
		if !parsePath(&got, target) {
			return
		}
		want, err := url.ParseRequestURI(target)
		if err != nil || !reflect.DeepEqual(&got, want) {
			t.Errorf("%q: %#v, want %#v, %v", target, &got, want, err)
		}
	})
}

// An exchange of a small GET allocates the request with its fields and the response's, and nothing else.
func TestAllocations(t *testing.T) {
	addr := start(t, handler(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(okBody)
	}))
	p := dialRaw(t, addr)
	allocs := testing.AllocsPerRun(200, func() { p.get(t) })
	if allocs > 5 {
		t.Errorf("%v allocations", allocs)
	}
}

var okBody = []byte("ok")
