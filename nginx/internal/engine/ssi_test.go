package engine_test

import (
	"io"
	"net"
	"strings"
	"testing"
)

const ssiConf = `root html; ssi on; types { text/html html; text/foo foo; }
	location = /text { return 200 "[$request_method $uri $args]"; }
	location = /empty { return 200 ""; }
	location = /sets { set $shared yes; return 200 "$1"; }
	location = /set { set $never a; return 404; }
	location /silent/ { ssi_silent_errors on; alias html/; }
	location /short/ { ssi_value_length 3; alias html/; }
	location /off/ { ssi off; alias html/; }
	location /types/ { ssi_types text/foo; alias html/; }
	location /modified/ { ssi_last_modified on; alias html/; }
	location = /kept { subrequest_output_buffer_size 3; return 200 "1234"; }`

// A document's commands are run, as nginx runs them.
func TestSSI(t *testing.T) {
	for _, tt := range []struct{ document, query, want string }{
		{`a<!--#echo var="arg_x" -->b`, "x=<1>", "a&lt;1&gt;b"},
		{`<!--#echo var="arg_x" encoding="none" --><!--#echo var="ARG_X" -->`, `x=<"`, `<"<"`},
		{`<!--#echo var="arg_x" encoding="url" -->`, `x=a/b<>?`, "a/b%3C%3E?"},
		{`<!--#echo var="arg_x" encoding="x" -->`, `x=&a`, ""},
		{`<!--#echo var="none" --><!--#echo var="none" default="d" --><!--#echo var="none" default="" -->`, "", "(none)d"},
		{`<!--#set var="A" value="\$1 ${arg_x}\"$arg_x\a\\" --><!--#echo var="a" encoding="none" -->`, "x=y", `$1 y"y\a\`},
		{`<!--#set var="a" value="$" -->|<!--#set var="a" value="${b" -->`, "", "ERR|ERR"},
		{`<!--#if expr="$arg_x" -->1<!--#else -->2<!--#endif -->`, "x=1", "1"},
		{`<!--#if expr="$arg_x" -->1<!--#else -->2<!--#endif -->`, "", "2"},
		{`<!--#if expr="$arg_x = a" -->1<!--#elif expr="$arg_x != b" -->2<!--#elif expr="$arg_x=b" -->3<!--#else -->4<!--#endif -->5`, "x=b", "35"},
		{`<!--#if expr="$arg_x = /^(?P<n>.)(.)/" --><!--#echo var="0" --><!--#echo var="2" --><!--#echo var="n" --><!--#echo var="3" --><!--#endif -->`, "x=ab", "abba(none)"},
		{`<!--#if expr="$arg_x != /a/" -->1<!--#else -->2<!--#endif -->`, "x=bab", "2"},
		{`<!--#if expr="$arg_x = /(/" -->1<!--#endif -->`, "", "ERR1ERR"},
		{`<!--#if expr="$arg_x = \/a" -->1<!--#endif -->`, "x=/a", "1"},
		{`<!--#if expr="a ~ b" -->|<!--#if expr="a = /b" -->`, "", "ERR|ERR"},
		{`<!--#if expr="1" --><!--#if expr="1" -->a<!--#endif -->`, "", "ERRa"},
		{`<!--#else --><!--#endif --><!--#elif expr="1" -->`, "", "ERRERRERR"},
		{`<!--#config errmsg="E" --><!--#x --><!--#echo --><!--#echo x="" --><!--#echo var="a" var="b" --><!--#echo var=a -->`, "", "EEEEE"},
		{`<!--#config timefmt="%Y%%" --><!--#if expr="$date_gmt = /^20..%/" -->1<!--#endif --><!--#if expr="$date_local = /^20..%/" -->2<!--#endif -->`, "", "12"},
		{`<!--#include virtual="/text?$args" -->`, "x=1", "[GET /text x=1]"},
		{`<!--#include file="part.html" wait="yes" -->`, "", "ERR"},
		{`<!--#include file="part.html" -->|<!--#include virtual="part.html?x=$arg_x" wait="YES"-->`, "x=a", "[(none)]|[a]"},
		{`<!--#include virtual="/te%78t" -->|<!--#include virtual="/text%3fa" -->`, "", "[GET /text ]|" + "404"},
		{`<!--#include virtual="/a/../text" -->|<!--#include virtual="/%2e%2e/text" -->|<!--#include virtual="?x" -->`, "", "ERR|ERR|403"},
		{`<!--#include -->|<!--#include virtual="/text" file="a" -->|<!--#include virtual="/text" wait="maybe" -->|<!--#include virtual="/text" set="a" stub="b" -->`, "", "ERR|ERR|ERR|ERR"},
		{`<!--#include virtual="/text" set="v" --><!--#echo var="v" -->|<!--#include virtual="/empty" set="w" --><!--#echo var="w" -->|<!--#include virtual="/nowhere" set="v" --><!--#echo var="v" -->`, "", "[GET /text ]||[GET /text ]"},
		{`<!--#block name="b" -->a<!--#echo var='arg_x' --><!--#endblock --><!--#include virtual="/nowhere?x=1" stub="b" -->|<!--#include virtual="/empty" stub="b" -->|<!--#include virtual="/text" stub="b" -->|<!--#include virtual="/text" stub="c" -->`, "", "a1|a(none)|[GET /text ]|ERR"},
		{`<!--#set var="s" value="outer" --><!--#include virtual="sets.html" --><!--#echo var="s" -->`, "", "outer-inner"},
		{`<!--#include virtual="/sets" --><!--#echo var="shared" -->`, "", "yes"},
		{`<!--#echo var="never" -->`, "", ""},
		{`<!--#include virtual="loop.html" -->`, "", strings.Repeat("(", 51) + "ERR" + strings.Repeat(")", 51)},
		{`<!`, "", "<!"},
	} {
		s := serve(t, with(server(ssiConf), "html/d.html", tt.document, "html/part.html", `[<!--#echo var="arg_x" -->]`, "html/sets.html", `<!--#echo var="s" --><!--#set var="s" value="-inner" -->`, "html/loop.html", `(<!--#include virtual="loop.html" -->)`))
		got := s.get("/d.html?" + tt.query).body
		got = strings.ReplaceAll(got, "[an error occurred while processing the directive]", "ERR")
		if before, page, ok := strings.Cut(got, "<html>\r\n<head><title>"); ok {
			got = before + page[:3]
		}
		equal(t, tt.document+" "+tt.query, got, tt.want)
	}
}

func TestSSISettings(t *testing.T) {
	s := serve(t, with(server(ssiConf), "html/d.html", `<!--#x --><!--#echo var="uri" -->`, "html/d.foo", `<!--#echo var="uri" -->`, "html/kept.html", `<!--#include virtual="/kept" set="x" -->`))
	const failed = "[an error occurred while processing the directive]"
	for target, want := range map[string]string{
		"/d.html":        failed + "/d.html",
		"/silent/d.html": "/silent/d.html",
		"/short/d.html":  failed + "/short/d.html",
		"/off/d.html":    `<!--#x --><!--#echo var="uri" -->`,
		"/d.foo":         `<!--#echo var="uri" -->`,
		"/types/d.foo":   "/types/d.foo",
	} {
		equal(t, target, s.get(target, "Range: bytes=0-100").body, want)
	}
	plain, modified, off := s.get("/d.html").Header, s.get("/modified/d.html").Header, s.get("/off/d.html").Header
	equal(t, "fields", plain.Get("Content-Length")+plain.Get("Last-Modified")+plain.Get("Etag")+plain.Get("Accept-Ranges"), "")
	equal(t, "ETag", modified.Get("Etag"), "W/"+off.Get("Etag"))
	equal(t, "HEAD", s.request("HEAD", "/d.html").Header.Get("Content-Length"), "")
	// too much for a variable: the response is not whole
	conn, err := net.Dial("tcp", s.first)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /kept.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if got, _ := io.ReadAll(conn); strings.HasSuffix(string(got), "0\r\n\r\n") {
		t.Errorf("%q", got)
	}
	if !strings.Contains(s.errors.String(), "too big subrequest response") {
		t.Error(s.errors)
	}
}

// A variable that is set to itself twice, again and again, would fill the memory, and so would blocks.
func TestSSIVariablesAreBounded(t *testing.T) {
	set := `<!--#set var="a" value="0123456789" -->` + strings.Repeat(`<!--#set var="a" value="$a$a" -->`, 40)
	block := `<!--#block name="b" -->` + strings.Repeat("x", 2<<20) + `<!--#endblock -->`
	s := serve(t, with(server(ssiConf), "html/set.html", set+`<!--#echo var="a" -->`, "html/block.html", block+"end"))
	if got := s.get("/set.html").body; len(got) > 1<<20+10000 || !strings.Contains(got, "0123456789") {
		t.Errorf("%d bytes", len(got))
	}
	conn, err := net.Dial("tcp", s.first)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /block.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if got, _ := io.ReadAll(conn); strings.HasSuffix(string(got), "0\r\n\r\n") {
		t.Errorf("%q", got)
	}
	if !strings.Contains(s.errors.String(), "too large variables and blocks of SSI") {
		t.Error(s.errors)
	}
}

// A page that includes itself twice would make 2^50 subrequests.
func TestSubrequestsAreBounded(t *testing.T) {
	twice := `<!--#include virtual="twice.html" -->`
	s := serve(t, with(server(ssiConf), "html/twice.html", twice+twice))
	s.get("/twice.html")
	if got := strings.Count(s.errors.String(), `subrequests cycle while processing "/twice.html"`); got == 0 || got > 10002 {
		t.Errorf("%d are refused", got)
	}
}

// A condition that is not known shows neither branch, and what follows is as ever.
func TestSSIConditionUnknown(t *testing.T) {
	long := "x=" + strings.Repeat("a", 60) + "!"
	for _, condition := range []string{`$arg_x = /^(?!x)(a+)+\$/`, `$arg_x != /^(?!x)(a+)+\$/`, `$name`, `$arg_x = $name`} {
		for _, document := range []string{
			`1<!--#if expr="` + condition + `" -->2<!--#else -->3<!--#endif -->4`,
			`1<!--#if expr="$arg_none" -->2<!--#elif expr="` + condition + `" -->2<!--#elif expr="1" -->3<!--#else -->3<!--#endif -->4`,
		} {
			s := serve(t, map[string]string{"nginx.conf": `events {} http { map $arg_x $name { default a; ~^(?!x)(a+)+$ b; }
				server { root html; ssi on; types { text/html html; } } }`, "html/d.html": document})
			equal(t, document, s.get("/d.html?"+long).body, "1[an error occurred while processing the directive]4")
			equal(t, document+" in time", len(s.get("/d.html?x=aaa").body), 3)
		}
	}
	s := serve(t, with(server(`root html; ssi on; types { text/html html; }`), "html/d.html",
		`<!--#set var="v" value="`+strings.Repeat("v", 200)+`" -->`+strings.Repeat(`<!--#set var="v" value="$v$v" -->`, 12)+`<!--#if expr="x$v$v" -->2<!--#else -->3<!--#endif -->`))
	if got := s.get("/d.html").body; strings.ContainsAny(got, "23") {
		t.Errorf("too large a value shows %q", got)
	}
}
