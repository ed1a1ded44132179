package wsupgrade

import (
	"bufio"
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/culvert-go/culvert/internal/fieldnames"
)

// renderNamed renders the rest of a request behind its first line, as names has the fields' names. What renderRequest writes
// itself stands where it is named, and else behind the others.
func renderNamed(b *bytes.Buffer, names fieldnames.List, out *http.Request, host, protocol string, body []byte) {
	own := map[string]string{"Host": "Host: " + host + "\r\n"}
	if protocol != "" {
		option := out.Header.Get("Connection")
		if !onlyUpgrades(option) { // it has others, which are not sent
			option = "Upgrade"
		}
		own["Connection"], own["Upgrade"] = "Connection: "+option+"\r\n", "Upgrade: "+protocol+"\r\n"
	} else {
		own["Connection"] = "Connection: close\r\n"
	}
	if body != nil {
		own["Content-Length"] = "Content-Length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	writeNamed(b, names, out.Header, own)
	b.WriteString("\r\n")
	b.Write(body)
}

// onlyUpgrades reports whether the options of a Connection are an upgrade, and perhaps the keep-alive that browsers send with it.
func onlyUpgrades(options string) bool {
	upgrade := false
	for option := range strings.SplitSeq(options, ",") {
		switch strings.ToLower(strings.Trim(option, " \t")) {
		case "upgrade":
			upgrade = true
		case "keep-alive":
		default:
			return false
		}
	}
	return upgrade
}

// writeNamed writes fields by names, those of own where they are named and else behind the others. Others that renderRequest
// does not copy are left out, and so is net/http's convention for no User-Agent.
func writeNamed(b *bytes.Buffer, names fieldnames.List, h http.Header, own map[string]string) {
	for name, value := range names.Lines(h, slices.Collect(maps.Keys(notCopied))...) {
		switch {
		case notCopied[name]:
			b.WriteString(own[name])
			delete(own, name)
		case value != "" || !strings.EqualFold(name, "User-Agent"):
			writeField(b, name, value)
		}
	}
	for _, name := range []string{"Host", "Connection", "Upgrade", "Content-Length"} {
		b.WriteString(own[name])
	}
}

// oneLine is what http.Header.Write makes of values.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// writeField writes a line. A name that is none, which would split the header, is left out as http.Header.Write does it.
func writeField(b *bytes.Buffer, name, value string) {
	if !httpguts.ValidHeaderFieldName(name) {
		return
	}
	b.WriteString(name + ": " + strings.Trim(oneLine.Replace(value), " \t") + "\r\n")
}

// peekFormat returns the names of the response that r is about to read, and its status line; nothing if its header is longer
// than r's buffer.
func peekFormat(r *bufio.Reader) (f fieldnames.Format) {
	for n := 1; ; n++ {
		b, err := r.Peek(max(n, r.Buffered()))
		if lines, whole := headerLines(b); whole {
			_, f.Status, _ = strings.Cut(lines[0], " ")
			for _, line := range lines[1:] {
				name, _, _ := strings.Cut(line, ":")
				f.Names = append(f.Names, name)
			}
			return f
		}
		if err != nil {
			return fieldnames.Format{}
		}
		n = len(b)
	}
}

// headerLines returns the lines of a header, and whether b has it as a whole. A line may end without a carriage return, as net/http
// reads it.
func headerLines(b []byte) (lines []string, whole bool) {
	for {
		line, rest, ok := bytes.Cut(b, []byte("\n"))
		if !ok {
			return nil, false
		}
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) == 0 && len(lines) > 0 {
			return lines, true
		}
		lines, b = append(lines, string(line)), rest
	}
}

// switchingNamed renders the header of a 101 as f has it.
func switchingNamed(fields http.Header, f fieldnames.Format) *bytes.Buffer {
	b := bytes.NewBufferString("HTTP/1.1 101 Switching Protocols\r\n")
	for name, value := range f.Names.Lines(fields) {
		writeField(b, name, value)
	}
	b.WriteString("\r\n")
	return b
}
