package fieldnames

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

func TestLines(t *testing.T) {
	h := http.Header{"X-Ip": {"1", "2", "3"}, "Etag": {`"a"`}, "Zeta": {"z"}, "Alpha": {"a"}, "Content-Length": {"9"}}
	placed := "Content-Length"
	for _, c := range []struct {
		names List
		want  []string
	}{
		{nil, []string{"Alpha a", `Etag "a"`, "X-Ip 1", "X-Ip 2", "X-Ip 3", "Zeta z"}},
		{List{"x-IP", "content-length", "ETag", "X-IP"}, []string{"x-IP 1", "Content-Length ", `ETag "a"`, "X-IP 2", "X-IP 3", "Alpha a", "Zeta z"}},
		{List{"X-IP", "X-IP", "x-ip", "X-Ip"}, []string{"X-IP 1", "X-IP 2", "x-ip 3", "Alpha a", `Etag "a"`, "Zeta z"}},
		{List{"Removed", "ZETA"}, []string{"ZETA z", "Alpha a", `Etag "a"`, "X-Ip 1", "X-Ip 2", "X-Ip 3"}},
	} {
		if got := lines(c.names, h, placed); !slices.Equal(got, c.want) {
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

// A section of many fields is ordered as one of few, and a key that is not canonical has no name.
func TestLinesOfManyFields(t *testing.T) {
	h := http.Header{"Etag": {"1"}, "etag": {"2"}}
	for n := range few + 2 {
		got := lines(List{"X-Absent", "eTag", "placed"}, h, "Placed")
		if want := []string{"eTag 1", "Placed "}; len(got) != 3+n || !slices.Equal(got[:2], want) || got[len(got)-1] != "etag 2" {
			t.Fatalf("%d others: %q", n, got)
		}
		h[fmt.Sprintf("X-%03d", n)] = []string{""}
	}
}

// The place of the caller's own field is where it is named, and else among the fields that have no name.
func TestLinesAround(t *testing.T) {
	h := http.Header{"Etag": {"1"}, "date": {"2"}, "Alpha": {"3"}, "Zeta": {"4"}}
	for _, c := range []struct {
		names List
		want  []string
	}{
		{List{"zeta"}, []string{"zeta 4", "Alpha 3", "Date ", "Etag 1", "date 2"}},
		{List{"zeta", "Etag", "alpha"}, []string{"zeta 4", "Etag 1", "alpha 3", "Date ", "date 2"}},
		{List{"zeta", "dATE", "alpha"}, []string{"zeta 4", "Date ", "alpha 3", "Etag 1", "date 2"}},
	} {
		var got []string
		for name, value := range c.names.LinesAround("Date", h) {
			got = append(got, name+" "+value)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.names, got, c.want)
		}
	}
}

// Two names that are no tokens are those of two fields if they differ.
func TestLinesOfInvalidNames(t *testing.T) {
	h := http.Header{"a b": {"1"}, "A B": {"2"}}
	if got, want := lines(List{"A B", "a b"}, h), []string{"A B 2", "a b 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The lines of a usual section need no memory.
func TestLinesAllocateNothing(t *testing.T) {
	h := http.Header{"Etag": {"1"}, "X-Ip": {"2", "3"}, "Content-Type": {"4"}}
	names := List{"ETag", "P3P", "x-ip", "X-IP", "Content-Length"}
	if n := testing.AllocsPerRun(100, func() {
		for name, value := range names.Lines(h, "Content-Length") {
			_, _ = name, value
		}
		for name, value := range names.LinesAround("Date", h, "Content-Length") {
			_, _ = name, value
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func lines(n List, h http.Header, placed ...string) (all []string) {
	for name, value := range n.Lines(h, placed...) {
		all = append(all, name+" "+value)
	}
	return all
}
