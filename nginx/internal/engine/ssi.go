package engine

import (
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/culvert-go/culvert"
	httpheader "github.com/culvert-go/culvert/internal/header"
	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/ssi"
)

// ssiModule runs the commands of server-side includes in responses (ngx_http_ssi_filter_module.c).
var ssiModule = module{
	directives: []directive{
		{name: "ssi", compile: setFlag(ssiSlot, func(s *ssiSettings) *bool { return &s.on })},
		{name: "ssi_last_modified", compile: setFlag(ssiSlot, func(s *ssiSettings) *bool { return &s.lastModified })},
		{name: "ssi_silent_errors", compile: setFlag(ssiSlot, func(s *ssiSettings) *bool { return &s.silent })},
		{name: "ssi_types", compile: ssiTypes},
		{name: "ssi_value_length", compile: setSize(ssiSlot, func(s *ssiSettings) *int64 { return &s.valueLength })},
		{name: "subrequest_output_buffer_size", compile: setSize(ssiSlot, func(s *ssiSettings) *int64 { return &s.kept })},
	},
	variables: map[string]variable{
		"date_gmt":   known(func(x *exchange) string { return ssi.FormatTime(x.ssi.timeFormat(), time.Now().UTC()) }),
		"date_local": known(func(x *exchange) string { return ssi.FormatTime(x.ssi.timeFormat(), time.Now()) }),
	},
	hooks: hooks{body: runCommands},
}

var ssiSlot = newSlot(ssiSettings{types: []string{"text/html"}, valueLength: 255, kept: 4 << 10})

// ssiSettings are the ssi directives.
type ssiSettings struct {
	on           bool
	lastModified bool
	silent       bool // errors are not shown in the content
	types        []string
	valueLength  int64 // of a parameter
	kept         int64 // subrequest_output_buffer_size: of content that a variable holds
}

func ssiTypes(_ *compiler, l *level, d *conf.Directive) error {
	ssiSlot.edit(l).types = mediaTypes([]string{"text/html"}, d.Args)
	return nil
}

// changes reports whether commands are looked for in responses of a type.
func (s *ssiSettings) changes(contentType string) bool {
	return s.on && isOneOf(s.types, contentType)
}

// ssiState is that of one response.
type ssiState struct {
	decided bool
	timefmt *string // of config; nil: the default
	shared  *ssiShared
}

// ssiShared is what the documents of a client's request share.
type ssiShared struct {
	variables map[string]string // by their names in lower case
	captures  []string
	blocks    []*ssiBlock
	kept      int // bytes of the variables and blocks
}

type ssiBlock struct {
	name string
	text []byte
}

// maxKept bounds the bytes of all variables and blocks of a client's request: one that is set to
// itself twice, again and again, would fill the memory.
const maxKept = 1 << 20

// grow counts n more bytes, and returns an error if they are too many.
func (s *ssiShared) grow(x *exchange, n int) error {
	if s.kept+n > maxKept {
		x.logError("too large variables and blocks of SSI")
		return errUnknown
	}
	s.kept += n
	return nil
}

// setVariable sets a variable of the documents.
func (s *ssiShared) setVariable(x *exchange, name, value string) error {
	name = strings.ToLower(name)
	if err := s.grow(x, len(value)-len(s.variables[name])); err != nil {
		return err
	}
	s.variables[name] = value
	return nil
}

func (s *ssiState) timeFormat() string {
	if s.timefmt == nil {
		return ssi.DefaultTime
	}
	return *s.timefmt
}

// ssiShared returns what x's document shares with others.
func (x *exchange) ssiShared() *ssiShared {
	root := x.root()
	if root.ssi.shared == nil {
		root.ssi.shared = &ssiShared{variables: map[string]string{}}
	}
	return root.ssi.shared
}

// runCommands runs the commands in the content of a response, or of a part of one.
func runCommands(x *exchange) culvert.Filter {
	if !ssiSlot.of(x.level).on {
		return nil
	}
	return x.once(&x.ssi.decided, func(_ int, h http.Header) func(io.Writer) io.WriteCloser {
		s := ssiSlot.of(x.level)
		if !s.changes(h.Get("Content-Type")) || h.Get("Content-Length") == "0" {
			return nil
		}
		h.Del("Content-Length")
		h.Del("Accept-Ranges")
		if s.lastModified {
			httpheader.WeakenETag(h)
		} else {
			h.Del("Last-Modified")
			h.Del("Etag")
		}
		return func(w io.Writer) io.WriteCloser { return newDocument(x, s, w) }
	})
}
