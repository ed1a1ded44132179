// Command cachewhy says what caches do with an answer, and why.
//
//	go run ./examples/cachewhy https://example.org/gone
//	go run ./examples/cachewhy head.txt
//
// The file is the head of an answer, as "curl -si" prints it; "-" is the standard input.
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
	answer, err := read(args[0], in)
	if err != nil {
		return err
	}
	return explain(out, answer)
}

// read asks for a URL, without following redirects and without a cache of its own, or reads
// a file.
func read(source string, in io.Reader) (*cachectl.Response, error) {
	if strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") {
		client := &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		answer, err := client.Get(source)
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		return &cachectl.Response{Request: answer.Request, Status: answer.StatusCode, Header: answer.Header}, nil
	}
	if source != "-" {
		file, err := os.Open(source)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	answer, err := readHead(bufio.NewReader(in))
	if err != nil {
		return nil, fmt.Errorf("%s: no head of an answer: %w", source, err)
	}
	return answer, nil
}

// readHead reads the last head of those that come one after the other, as curl prints them
// with -L or behind a proxy.
func readHead(r *bufio.Reader) (answer *cachectl.Response, err error) {
	for {
		if next, peekErr := r.Peek(5); answer != nil && (peekErr != nil || string(next) != "HTTP/") {
			return answer, nil
		}
		line, err := r.ReadString('\n')
		if err != nil && line == "" {
			return nil, err
		}
		answer = &cachectl.Response{Header: http.Header{}}
		if _, err := fmt.Sscanf(line, "HTTP/%s %d", new(string), &answer.Status); err != nil {
			return nil, fmt.Errorf("%q is no status line", strings.TrimSpace(line))
		}
		if err := readFields(r, answer.Header); err != nil {
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
			return fmt.Errorf("%q is no field", line)
		}
		h.Add(name, strings.TrimSpace(value))
		if err != nil {
			return nil
		}
	}
}

func explain(out io.Writer, answer *cachectl.Response) error {
	fmt.Fprintf(out, "%d %s\n\n", answer.Status, http.StatusText(answer.Status))
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "CACHE\tREUSED\tFOR\tBECAUSE")
	for _, v := range cachectl.Explain(answer) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", v.Cache, map[bool]string{true: "yes", false: "no"}[v.Reuse], lifetime(v), v.Because)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return advise(out, answer)
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

// advise says what to send in the place of an error page that sticks.
func advise(out io.Writer, answer *cachectl.Response) error {
	if _, sticks := cachectl.Sticks(answer); !sticks {
		return nil
	}
	fixed := answer.Header.Clone()
	cachectl.ErrorPages().Apply(&cachectl.Response{Request: answer.Request, Status: answer.Status, Header: fixed})
	_, err := fmt.Fprintf(out, `
Nobody has said for how long this may be kept. Send instead, in the place of every line that is there:

    Cache-Control: %s
    Expires: %s

That is what cachectl.ErrorPages does. Who has the page already is not reached by it: an answer from another
address of the site with Clear-Site-Data: "cache" frees them (cachectl.FreeStuck).
`, fixed.Get("Cache-Control"), fixed.Get("Expires"))
	return err
}
