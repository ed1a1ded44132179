package listing

import (
	"bufio"
	"io"
	"net/http"
	"strconv"

	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// JSON writes the entries as an array, and as a call of the function callback if there is
// one (ngx_http_autoindex_json).
func JSON(w io.Writer, entries []Entry, callback string) error {
	b := bufio.NewWriter(w)
	if callback != "" {
		b.WriteString("/* callback */\r\n" + callback + "(")
	}
	b.WriteByte('[')
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\r\n{ \"name\":\"" + string(vars.AppendJSON(nil, e.Name)) + "\", \"type\":\"" + e.kind() +
			"\", \"mtime\":\"" + gmtime(e.Modified).Format(http.TimeFormat) + "\"")
		if e.File {
			b.WriteString(", \"size\":" + strconv.FormatInt(e.Size, 10))
		}
		b.WriteString(" }")
	}
	b.WriteString("\r\n]")
	if callback != "" {
		b.WriteString(");")
	}
	return b.Flush()
}

// XML writes the entries as elements (ngx_http_autoindex_xml).
func XML(w io.Writer, entries []Entry) error {
	b := bufio.NewWriter(w)
	b.WriteString("<?xml version=\"1.0\"?>\r\n<list>\r\n")
	for _, e := range entries {
		b.WriteString("<" + e.kind() + " mtime=\"" + gmtime(e.Modified).Format("2006-01-02T15:04:05Z") + "\"")
		if e.File {
			b.WriteString(" size=\"" + strconv.FormatInt(e.Size, 10) + "\"")
		}
		b.WriteString(">" + htmlEscaper.Replace(e.Name) + "</" + e.kind() + ">\r\n")
	}
	b.WriteString("</list>\r\n")
	return b.Flush()
}
