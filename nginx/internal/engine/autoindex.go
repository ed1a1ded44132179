package engine

import (
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/listing"
	"github.com/culvert-go/culvert/nginx/internal/engine/static"
	"github.com/culvert-go/culvert/nginx/internal/engine/vars"
)

// autoindexRule is autoindex and the directives beside it.
type autoindexRule struct {
	on      bool
	rounded bool // autoindex_exact_size off
	local   bool // autoindex_localtime
	format  string
}

func autoindex(_ *compiler, l *level, d *conf.Directive) error {
	l.autoindex.on = d.Flag()
	return nil
}

func autoindexExactSize(_ *compiler, l *level, d *conf.Directive) error {
	l.autoindex.rounded = !d.Flag()
	return nil
}

func autoindexLocaltime(_ *compiler, l *level, d *conf.Directive) error {
	l.autoindex.local = d.Flag()
	return nil
}

// listingTypes are the formats of autoindex_format with their content types. XML is in UTF-8
// regardless of charset.
var listingTypes = map[string]string{
	"html":  "text/html",
	"json":  "application/json",
	"jsonp": "application/javascript",
	"xml":   "text/xml; charset=utf-8",
}

// autoindexFormat compiles "autoindex_format html|xml|json|jsonp".
func autoindexFormat(_ *compiler, l *level, d *conf.Directive) error {
	l.autoindex.format = strings.ToLower(d.Args[0])
	if listingTypes[l.autoindex.format] == "" {
		return d.Errorf("invalid value \"%s\"", d.Args[0])
	}
	return nil
}

// lists reports whether a directory without an index is listed.
func (a autoindexRule) lists(method string) bool {
	return a.on && (method == http.MethodGet || method == http.MethodHead)
}

// list serves the listing of a directory (ngx_http_autoindex_module.c).
func (x *exchange) list(w http.ResponseWriter, name string) int {
	format, callback, ok := x.listingFormat()
	if !ok {
		return http.StatusBadRequest
	}
	dir, status := static.OpenDir(name)
	if status != 0 {
		x.logFailed("opendir", name, status)
		return status
	}
	defer dir.Close()
	if x.errStatus == 0 || x.errStatus == http.StatusOK {
		status = static.Undated(x.HTTP.Header)
	}
	switch status {
	case 0:
		return x.sendListing(w, dir, format, callback)
	case http.StatusNotModified:
		w.WriteHeader(status)
		return 0
	}
	return status
}

// listingFormat returns the format of the listing and, for JSONP, the function that the request
// names; JSONP without a function is JSON. ok is false if no function can have the name.
func (x *exchange) listingFormat() (format, callback string, ok bool) {
	format = x.level.autoindex.format
	if format != "jsonp" {
		return format, "", true
	}
	if callback, ok = x.callback(); callback == "" {
		format = "json"
	}
	return format, callback, ok
}

// sendListing reads the whole directory, to sort it, and sends it line by line. For HEAD it does
// not read the directory.
func (x *exchange) sendListing(w http.ResponseWriter, dir *os.File, format, callback string) int {
	var entries []listing.Entry
	if x.HTTP.Method != http.MethodHead {
		var err error
		if entries, err = listing.Read(x.HTTP.Context(), dir, x.logUnseen); err != nil {
			x.logError("readdir() \"" + path.Clean(dir.Name()) + "\" failed (" + err.Error() + ")")
			return http.StatusInternalServerError
		}
	}
	w.Header().Set("Content-Type", listingTypes[format])
	page := x.listingPage(w.Header())
	w.WriteHeader(http.StatusOK)
	if x.HTTP.Method == http.MethodHead {
		return 0
	}
	if err := writeListing(w, page, entries, format, callback); err != nil {
		panic(http.ErrAbortHandler) // the client has disconnected
	}
	// It is sent in chunks, as nginx's: net/http sets the length of a short body that is not
	// flushed.
	_ = http.NewResponseController(w).Flush()
	return 0
}

// logUnseen logs a name without permission.
func (x *exchange) logUnseen(name string) {
	x.logAt(levelCrit, "stat() \""+name+"\" failed (13: Permission denied)", "")
}

func writeListing(w http.ResponseWriter, page listing.Page, entries []listing.Entry, format, callback string) error {
	switch format {
	case "xml":
		return listing.XML(w, entries)
	case "json", "jsonp":
		return listing.JSON(w, entries, callback)
	}
	return page.HTML(w, entries)
}

// listingPage returns the layout of a page with the header h, to which the charset is added at the end.
func (x *exchange) listingPage(h http.Header) listing.Page {
	page := listing.Page{URI: x.URI, Rounded: x.level.autoindex.rounded, UTF8: strings.EqualFold(x.level.charsetOf(x, h), "utf-8")}
	if x.level.autoindex.local {
		// the current zone, as in nginx: in winter a file of last summer is shown in winter time
		_, seconds := time.Now().Zone()
		page.Offset = int64(seconds)
	}
	return page
}

// maxCallback bounds the name of a function.
const maxCallback = 128

// callback returns the function that "?callback=" names, as it was sent; ok is false if no
// function can have the name.
func (x *exchange) callback() (name string, ok bool) {
	name, _ = vars.Argument(x.Args, "callback")
	if len(name) > maxCallback {
		x.logAt(levelInfo, "client sent too long callback name: \""+name+"\"", "")
		return "", false
	}
	for i := range len(name) {
		if c := name[i] | 0x20; (c < 'a' || c > 'z') && (c < '0' || c > '9') && name[i] != '_' && name[i] != '.' {
			x.logAt(levelInfo, "client sent invalid callback name: \""+name+"\"", "")
			return "", false
		}
	}
	return name, true
}
