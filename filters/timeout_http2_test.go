package filters_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/culvert-go/culvert/filters"
	"github.com/culvert-go/culvert/internal/leaktest"
	"github.com/culvert-go/culvert/internal/wiretest"
)

// A stream that has declared that its content is empty, and does not end, is waited for like other content.
func TestTimeoutOfAnEmptyUploadOverHTTP2(t *testing.T) {
	leaktest.Check(t)
	f := good(t)(filters.Timeout(250 * time.Millisecond))
	conn := serveHTTP2(t, f(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the body ends with %v", err)
		}
		<-r.Context().Done()
	})))
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = framer.WriteSettings()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/"}, {"content-length", "0"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if header, ok := frame.(*http2.MetaHeadersFrame); ok {
			if status := header.PseudoValue("status"); status != "408" {
				t.Errorf("the client got %s", status)
			}
			return
		}
	}
}

// serveHTTP2 returns a connection to a server of HTTP/2 without TLS.
func serveHTTP2(t *testing.T, h http.Handler) net.Conn {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, Protocols: &protocols, ErrorLog: wiretest.Quiet()}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); server.Close(); <-served })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}
