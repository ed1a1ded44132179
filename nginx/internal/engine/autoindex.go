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

// autoindexModule lists directories (ngx_http_autoindex_module.c).
var autoindexModule = module{
	directives: []directive{
		{name: "autoindex", compile: setFlag(autoindexSlot, func(s *autoindexSettings) *bool { return &s.on })},
		{name: "autoindex_exact_size", compile: setFlag(autoindexSlot, func(s *autoindexSettings) *bool { return &s.exact })},
		{name: "autoindex_format", compile: autoindexFormat},
		{name: "autoindex_localtime", compile: setFlag(autoindexSlot, func(s *autoindexSettings) *bool { return &s.local })},
	},
	active: func(l *level) bool { return autoindexSlot.of(l).on },
	hooks:  hooks{content: serveListing},
}

type autoindexSettings struct {
	on     bool
	exact  bool // sizes
	local  bool // times
	format string
}

var autoindexSlot = newSlot(autoindexSettings{exact: true, format: "html"})

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
	format := strings.ToLower(d.Args[0])
	if listingTypes[format] == "" {
		return d.Errorf("invalid value \"%s\"", d.Args[0])
	}
	autoindexSlot.edit(l).format = format
	return nil
}

// serveListing lists a directory without an index.
func serveListing(x *exchange, w http.ResponseWriter) (status int, done bool) {
	method := x.HTTP.Method
	if !strings.HasSuffix(x.URI, "/") || method != http.MethodGet && method != http.MethodHead {
		return 0, false
	}
	return listDirectory(x, w, filename(x, x.URI)), true
}

func listDirectory(x *exchange, w http.ResponseWriter, name string) int {
	format, callback, ok := listingFormat(x)
	if !ok {
		return http.StatusBadRequest
	}
	dir, status := links(x).OpenDir(name)
	if status != 0 {
		logFailed(x, "opendir", name, status)
		return status
	}
	defer dir.Close()
	if x.errStatus == 0 || x.errStatus == http.StatusOK {
		status = static.Undated(x.HTTP.Header)
	}
	switch status {
	case 0:
		return sendListing(x, w, dir, format, callback)
	case http.StatusNotModified:
		w.WriteHeader(status)
		return 0
	}
	return status
}

// listingFormat returns the format of the listing and, for JSONP, the function that the request
// names; JSONP without a function is JSON. ok is false if no function can have the name.
func listingFormat(x *exchange) (format, callback string, ok bool) {
	format = autoindexSlot.of(x.level).format
	if format != "jsonp" {
		return format, "", true
	}
	if callback, ok = callbackOf(x); callback == "" {
		format = "json"
	}
	return format, callback, ok
}

// sendListing reads the whole directory, to sort it, and sends it line by line. For HEAD it does
// not read the directory.
func sendListing(x *exchange, w http.ResponseWriter, dir *os.File, format, callback string) int {
	var entries []listing.Entry
	if x.HTTP.Method != http.MethodHead {
		var err error
		if entries, err = listing.Read(x.HTTP.Context(), dir, func(name string) { logUnseen(x, name) }); err != nil {
			x.logError("readdir() \"" + path.Clean(dir.Name()) + "\" failed (" + err.Error() + ")")
			return http.StatusInternalServerError
		}
	}
	w.Header().Set("Content-Type", listingTypes[format])
	page := listingPage(x, w.Header())
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
func logUnseen(x *exchange, name string) {
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
func listingPage(x *exchange, h http.Header) listing.Page {
	s := autoindexSlot.of(x.level)
	page := listing.Page{URI: x.URI, Rounded: !s.exact, UTF8: strings.EqualFold(charsetOf(x, h), "utf-8")}
	if s.local {
		// the current zone, as in nginx: in winter a file of last summer is shown in winter time
		_, seconds := time.Now().Zone()
		page.Offset = int64(seconds)
	}
	return page
}

// maxCallback bounds the name of a function.
const maxCallback = 128

// callbackOf returns the function that "?callback=" names, as it was sent; ok is false if no
// function can have the name.
func callbackOf(x *exchange) (name string, ok bool) {
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
