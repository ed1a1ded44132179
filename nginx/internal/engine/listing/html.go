package listing

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Page configures how a listing is shown in a browser.
type Page struct {
	// URI is the decoded path of the request.
	URI string
	// UTF8 reports whether the page's charset is UTF-8: the names' columns then count characters,
	// otherwise bytes.
	UTF8 bool
	// Rounded shows sizes in K, M and G.
	Rounded bool
	// Offset is added to the times: the seconds of the time zone.
	Offset int64
}

// nameWidth is how many characters of a name are shown (NGX_HTTP_AUTOINDEX_NAME_LEN).
const nameWidth = 50

// HTML writes the entries as a page (ngx_http_autoindex_html).
func (p Page) HTML(w io.Writer, entries []Entry) error {
	b := bufio.NewWriter(w) // it keeps the first error, and Flush returns it
	title := htmlEscaper.Replace(p.URI)
	fmt.Fprintf(b, "<html>\r\n<head><title>Index of %s</title></head>\r\n<body>\r\n<h1>Index of %s</h1><hr><pre><a href=\"../\">../</a>\r\n", title, title)
	for _, e := range entries {
		p.row(b, e)
	}
	b.WriteString("</pre><hr></body>\r\n</html>\r\n")
	return b.Flush()
}

func (p Page) row(b *bufio.Writer, e Entry) {
	b.WriteString("<a href=\"" + escapeComponent(e.Name))
	if e.Dir {
		b.WriteByte('/')
	}
	b.WriteString("\">" + p.name(e) + " ")
	b.WriteString(gmtime(e.Modified + p.Offset).Format("02-Jan-2006 15:04 "))
	b.WriteString(p.size(e) + "\r\n")
}

// name returns the text of a link and the padding of its column.
func (p Page) name(e Entry) string {
	text, width := e.Name, len(e.Name)
	cut := bytesOf
	if n, ok := characters(e.Name); p.UTF8 && ok {
		width, cut = n, charactersOf
	}
	if width > nameWidth {
		return htmlEscaper.Replace(cut(text, nameWidth-3)) + "..&gt;</a>"
	}
	text = htmlEscaper.Replace(text)
	if e.Dir && width < nameWidth {
		text += "/"
		width++
	}
	return text + "</a>" + strings.Repeat(" ", nameWidth-width)
}

func (p Page) size(e Entry) string {
	switch {
	case p.Rounded && e.Dir:
		return "      -"
	case p.Rounded:
		return rounded(e.Size)
	case e.Dir:
		return "                  -"
	}
	return fmt.Sprintf("%19d", e.Size)
}

// rounded formats a size in seven characters: bytes up to 9999, then the next unit that fits,
// with halves rounded up.
func rounded(size int64) string {
	const k, m, g = 1 << 10, 1 << 20, 1 << 30
	switch {
	case size >= g:
		return fmt.Sprintf("%6dG", (size+g/2)/g)
	case size >= m:
		return fmt.Sprintf("%6dM", (size+m/2)/m)
	case size > 9999:
		return fmt.Sprintf("%6dK", (size+k/2)/k)
	}
	return fmt.Sprintf(" %6d", size)
}
