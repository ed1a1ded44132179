// Command cachewhy prints what caches do with a response, and why.
//
//	go run ./examples/cachewhy https://example.org/gone
//	go run ./examples/cachewhy header.txt
//
// The file is a response's header, as "curl -si" prints it; "-" is the standard input.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/culvert-go/culvert/cachectl"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cachewhy:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 1 || strings.HasPrefix(args[0], "-") && args[0] != "-" {
		return errors.New("usage: cachewhy URL|FILE|-")
	}
	response, err := read(args[0], in)
	if err != nil {
		return err
	}
	return explain(out, response)
}

// read requests a URL, without following redirects and without a cache of its own, or reads a
// file.
func read(source string, in io.Reader) (*cachectl.Response, error) {
	if strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") {
		client := &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		response, err := client.Get(source)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		return &cachectl.Response{Request: response.Request, Status: response.StatusCode, Header: response.Header}, nil
	}
	if source != "-" {
		file, err := os.Open(source)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	response, err := readHeader(bufio.NewReader(in))
	if err != nil {
		return nil, fmt.Errorf("%s: no header of a response: %w", source, err)
	}
	return response, nil
}

// readHeader reads the last of several successive headers, as curl prints them with -L or behind
// a proxy.
func readHeader(r *bufio.Reader) (response *cachectl.Response, err error) {
	for {
		if next, peekErr := r.Peek(5); response != nil && (peekErr != nil || string(next) != "HTTP/") {
			return response, nil
		}
		line, err := r.ReadString('\n')
		if err != nil && line == "" {
			return nil, err
		}
		response = &cachectl.Response{Header: http.Header{}}
		if _, err := fmt.Sscanf(line, "HTTP/%s %d", new(string), &response.Status); err != nil {
			return nil, fmt.Errorf("%q is not a status line", strings.TrimSpace(line))
		}
		if err := readFields(r, response.Header); err != nil {
			return nil, err
		}
	}
}

func readFields(r *bufio.Reader, h http.Header) error {
	for {
		line, err := r.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			return nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("%q is not a header field", line)
		}
		h.Add(name, strings.TrimSpace(value))
		if err != nil {
			return nil
		}
	}
}

func explain(out io.Writer, response *cachectl.Response) error {
	fmt.Fprintf(out, "%d %s\n\n", response.Status, http.StatusText(response.Status))
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "CACHE\tREUSED\tFOR\tBECAUSE")
	for _, v := range cachectl.Explain(response) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", v.Cache, map[bool]string{true: "yes", false: "no"}[v.Reuse], lifetime(v), v.Because)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return advise(out, response)
}

func lifetime(v cachectl.Verdict) string {
	switch {
	case !v.Reuse:
		return "-"
	case v.For == cachectl.Forever:
		return "without limit"
	}
	return v.For.Round(time.Second).String()
}

// advise prints what to send instead of an error page that sticks.
func advise(out io.Writer, response *cachectl.Response) error {
	if _, sticks := cachectl.Sticks(response); !sticks {
		return nil
	}
	fixed := response.Header.Clone()
	cachectl.ErrorPages().Apply(&cachectl.Response{Request: response.Request, Status: response.Status, Header: fixed})
	_, err := fmt.Fprintf(out, `
The response does not say how long it may be kept. Send instead, replacing every line of these fields:

    Cache-Control: %s
    Expires: %s

That is what cachectl.ErrorPages does. A browser that has the page already does not see it: a response from another
address of the site with Clear-Site-Data: "cache" frees it (cachectl.FreeStuck).
`, fixed.Get("Cache-Control"), fixed.Get("Expires"))
	return err
}
