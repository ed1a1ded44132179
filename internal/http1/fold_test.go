package http1_test

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/culvert-go/culvert/internal/http1"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// The cost of a field that is folded into many lines grows with their number, not with its square.
func TestManyFoldedLines(t *testing.T) {
	const lines = 300
	synctest.Test(t, func(t *testing.T) {
		response := "HTTP/1.1 204 No Content\r\nX-A: b" + strings.Repeat("\n c", lines) + "\r\n\r\n"
		s := newScripted(t, http1.Options{}, func(_ int32, p *wiretest.Peer) {
			for {
				if _, err := p.R.Peek(1); err != nil {
					return
				}
				p.Header()
				_, _ = io.WriteString(p.Conn, response)
			}
		})
		allocs := testing.AllocsPerRun(10, func() {
			c := &http1.Call{Request: text(t.Context(), "GET", "")}
			if err := c.Prepare(); err != nil {
				t.Fatal(err)
			}
			resp, err := s.Do(c)
			if err != nil {
				t.Fatal(err)
			}
			if want := "b" + strings.Repeat(" c", lines); resp.Header.Get("X-A") != want {
				t.Fatalf("%q", resp.Header)
			}
			c.Release()
		})
		if allocs > lines/2 {
			t.Errorf("%v allocations for %d lines", allocs, lines)
		}
		s.CloseIdle()
	})
}
