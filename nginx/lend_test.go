package nginx

import (
	"io"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/bufpool"
	"github.com/culvert-go/culvert/internal/clientside"
)

func init() { bufpool.Poison = true } // so that each use of a request shows that has ended

// The servers of a configuration use the memory of requests again. They could not if the program's own handler kept them.
func TestReturns(t *testing.T) {
	s, err := New(Options{Prefix: t.TempDir(), File: "f", Stderr: io.Discard, ReadFile: func(string) ([]byte, error) {
		return []byte(`events {} http { access_log off; server { return 200; } }`), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	g := s.current.Load()
	if l := g.engine.Listeners()[0]; !clientside.Returns(g.newServer(l).Handler) {
		t.Error("requests are made anew")
	}
	if clientside.Returns(counted{g, http.NotFoundHandler()}) {
		t.Error("requests of another handler are used again")
	}
}
