package server

import (
	"bufio"
	"net"
	"net/http"
	"strconv"
	"testing"
)

// BenchmarkServe is a GET of 1 KiB from memory over a kept connection, by this server and by net/http's.
func BenchmarkServe(b *testing.B) {
	body := make([]byte, 1<<10)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = plainText
		_, _ = w.Write(body)
	})
	for _, c := range []struct {
		name  string
		serve func(l net.Listener) (func() error, func() error)
	}{
		{"server", func(l net.Listener) (func() error, func() error) {
			s := &Server{Handler: h}
			return func() error { return s.Serve(l) }, s.Close
		}},
		{"net/http", func(l net.Listener) (func() error, func() error) {
			s := &http.Server{Handler: h}
			return func() error { return s.Serve(l) }, s.Close
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			serve, stop := c.serve(l)
			ended := make(chan error)
			go func() { ended <- serve() }()
			defer func() { _ = stop(); <-ended }()
			conn, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			benchmark(b, conn)
		})
	}
}

var plainText = []string{"text/plain"}

// benchmark sends requests one after the other. The client allocates nothing.
func benchmark(b *testing.B, conn net.Conn) {
	request := []byte("GET /some/path?a=b HTTP/1.1\r\nHost: example.com\r\nUser-Agent: benchmark\r\nAccept: */*\r\n\r\n")
	r := bufio.NewReaderSize(conn, 4<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if len(line) == 2 {
				break
			}
		}
		if _, err := r.Discard(1 << 10); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNamedHeader is a header of so many fields in the order of their names, without a Date. Its time is in proportion to them.
func BenchmarkNamedHeader(b *testing.B) {
	for _, fields := range []int{1000, 4000, 16000} {
		b.Run(strconv.Itoa(fields), func(b *testing.B) {
			w := &writer{header: make(http.Header)}
			for i := range fields {
				name := "X-" + strconv.Itoa(i)
				w.header[name] = plainText
				w.format.Names = append(w.format.Names, name)
			}
			var header []byte
			for b.Loop() {
				header = w.appendMarked(header[:0], ownPlaces)
			}
		})
	}
}
