package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// work is a kind of request and its response.
type work struct {
	name    string
	request []byte // header and body
	length  int    // of the content that is expected
	rate    int    // requests a second at which times are taken, far from the peers' limits
	secure  bool   // over TLS
}

// anyLength is the content length of a work whose response may have any.
const anyLength = -1

// works are the kinds of work. The path says how many bytes the origin responds with.
func works() []work {
	return []work{
		{name: "GET 1 KiB", request: []byte(head("GET", 1<<10, 0)), length: 1 << 10, rate: 4000},
		{name: "GET 1 MiB", request: []byte(head("GET", 1<<20, 0)), length: 1 << 20, rate: 200},
		{name: "POST 16 KiB", request: append([]byte(head("POST", 1<<10, 16<<10)), bytes.Repeat([]byte("culvert\n"), 2<<10)...), length: 1 << 10, rate: 3000},
		{name: "POST 1 MiB", request: append([]byte(head("POST", 1<<10, 1<<20)), bytes.Repeat([]byte("culvert\n"), 128<<10)...), length: 1 << 10, rate: 200},
	}
}

func workNamed(name string) work {
	all := works()
	return all[slices.IndexFunc(all, func(w work) bool { return w.name == name })]
}

func head(method string, length, body int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s /%d HTTP/1.1\r\nHost: bench.example\r\nUser-Agent: bench\r\n", method, length)
	if body > 0 {
		fmt.Fprintf(&b, "Content-Type: text/plain\r\nContent-Length: %d\r\n", body)
	}
	b.WriteString("\r\n")
	return b.String()
}
