package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/proxy"
	"github.com/culvert-go/culvert/upstream"
)

type panickyReader struct{}

func (panickyReader) Read([]byte) (int, error) { panic("a bug") }

// A filter's body that panics while it is buffered leaves no file open.
func TestNoFileBehindAPanic(t *testing.T) { onPaths(t, testNoFileBehindAPanic) }
func testNoFileBehindAPanic(t *testing.T, via path) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the garbage collector would close it
	dir := t.TempDir()
	p := newProxy(t, via, proxy.Options{
		Upstream:      groupOf(t, upstream.Options{}, upstream.Target{Addr: "192.0.2.1:80", Down: true}),
		RequestBuffer: &proxy.Buffer{Memory: 1, Disk: 1 << 20, Dir: dir},
	})
	r := httptest.NewRequest(http.MethodPut, "/", io.MultiReader(strings.NewReader("hello"), panickyReader{}))
	func() {
		defer func() {
			if v := recover(); v != "a bug" {
				t.Errorf("a panic with %v", v)
			}
		}()
		p.ServeHTTP(httptest.NewRecorder(), r)
	}()
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if name, _ := os.Readlink(fd); strings.HasPrefix(name, dir) {
			t.Errorf("%s is open", name)
		}
	}
}
