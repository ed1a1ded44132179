package server

import (
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

var okBody = []byte("ok")
