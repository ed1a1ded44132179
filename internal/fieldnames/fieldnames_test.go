package fieldnames

import (
	"net/http"
	"slices"
	"testing"
)

func TestLines(t *testing.T) {
	h := http.Header{"X-Ip": {"1", "2", "3"}, "Etag": {`"a"`}, "Zeta": {"z"}, "Alpha": {"a"}, "Content-Length": {"9"}}
	placed := func(key string) bool { return key == "Content-Length" }
	for _, c := range []struct {
		names List
		want  []string
	}{
		{nil, []string{"Alpha a", `Etag "a"`, "X-Ip 1", "X-Ip 2", "X-Ip 3", "Zeta z"}},
		{List{"x-IP", "content-length", "ETag", "X-IP"}, []string{"x-IP 1", "Content-Length ", `ETag "a"`, "X-IP 2", "X-IP 3", "Alpha a", "Zeta z"}},
		{List{"X-IP", "X-IP", "x-ip", "X-Ip"}, []string{"X-IP 1", "X-IP 2", "x-ip 3", "Alpha a", `Etag "a"`, "Zeta z"}},
		{List{"Removed", "ZETA"}, []string{"ZETA z", "Alpha a", `Etag "a"`, "X-Ip 1", "X-Ip 2", "X-Ip 3"}},
	} {
		var got []string
		for name, value := range c.names.Lines(h, placed) {
			got = append(got, name+" "+value)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.names, got, c.want)
		}
		for range c.names.Lines(h, placed) {
			break // a caller may end the loop
		}
	}
	if !(List{"x-ip"}).Has("X-Ip") || (List{"x-ip"}).Has("X-Ipp") {
		t.Error("Has")
	}
}
