package ssi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/culvert-go/culvert/nginx/internal/engine/ssi"
)

// recorder writes what it receives, commands in brackets.
type recorder struct{ strings.Builder }

func (r *recorder) Text(p []byte) error {
	r.Write(p)
	return nil
}

func (r *recorder) Command(c *ssi.Command) error {
	fmt.Fprintf(r, "[%s", c.Name)
	for _, p := range c.Params {
		fmt.Fprintf(r, " %s=%q", p.Key, p.Value)
	}
	r.WriteString("]")
	return nil
}

func (r *recorder) Malformed(why string) error {
	r.WriteString("{" + why + "}")
	return nil
}

// parse writes text in pieces of size bytes.
func parse(text string, size int) string {
	r := new(recorder)
	p := ssi.NewParser(r, 10)
	for len(text) > 0 {
		n := min(size, len(text))
		_, _ = p.Write([]byte(text[:n]))
		text = text[n:]
	}
	_ = p.Close()
	return r.String()
}

func TestParser(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                  "plain",
		`a<!--#echo var="x"-->b`: `a[echo var="x"]b`,
		`<!--# set  var = 'x"y' value="\"z\\" -->`:        `[set var="x\"y" value="\\\"z\\\\"]`,
		"<<!--#endif-->>":                                 "<[endif]>",
		"<!<!-<!--<!--#endif -->":                         "<!<!-<!--[endif]",
		"<!-- comment --><!":                              "<!-- comment --><!",
		"<!--#endif -->x<!--#else -->":                    "[endif]x[else]",
		"x<!--#echo var":                                  "x",
		"x<!--":                                           "x<!--",
		`<!--#echo var="01234567890" -->x`:                `{too long "01234567890..." value of "var" parameter in "echo" SSI command}x`,
		`<!--#echo var= -->x`:                             `{unexpected "-" symbol before value of "var" parameter in "echo" SSI command}x`,
		`<!--#echo var x -->x`:                            `{unexpected "x" symbol after "var" parameter in "echo" SSI command}x`,
		`<!--#echo va-->x`:                                `{unexpected "-" symbol after "va" parameter in "echo" SSI command}x`,
		`<!--#echo var="a"b -->x`:                         `{unexpected "b" symbol after "a" value of "var" parameter in "echo" SSI command}x`,
		`<!--#a-b -->x`:                                   `{unexpected "b" symbol in "a" SSI command}x`,
		`<!--#a --- -->x`:                                 `{unexpected "-" symbol in "a" SSI command}x`,
		"<!--#" + strings.Repeat("a", 33) + " -->x":       `{the "` + strings.Repeat("a", 33) + `..." SSI command is too long}x`,
		"<!--#a " + strings.Repeat("b", 33) + `="" -->x`:  `{too long "` + strings.Repeat("b", 33) + `..." parameter in "a" SSI command}x`,
		"<!--#a " + strings.Repeat(`b="" `, 17) + " -->x": `{too many SSI command parameters: "a"}x`,
	} {
		for size := 1; size <= len(text); size++ {
			if got := parse(text, size); got != want {
				t.Errorf("%q by %d:\n got %s\nwant %s", text, size, got, want)
			}
		}
	}
}

// failing refuses a kind of part.
type failing struct {
	recorder
	text, command bool
}

var errRefused = errors.New("refused")

func (f *failing) Text([]byte) error {
	if f.text {
		return errRefused
	}
	return nil
}

func (f *failing) Command(*ssi.Command) error {
	if f.command {
		return errRefused
	}
	return nil
}

func TestHandlerFails(t *testing.T) {
	for _, h := range []*failing{{text: true}, {command: true}} {
		if _, err := ssi.NewParser(h, 10).Write([]byte("a<!--#b -->")); err != errRefused {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

// What is found does not depend on how the stream is split, and text without commands is kept.
func FuzzParser(f *testing.F) {
	f.Add("a<!--#echo var=\"x\" --><!-<!--", 3)
	f.Add("<!--#a b='\\'c' --><!--#- -->", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		if size < 1 {
			return
		}
		whole := parse(text, len(text)+1)
		if split := parse(text, size); split != whole {
			t.Errorf("%q by %d: %q, want %q", text, size, split, whole)
		}
		if !strings.Contains(text, "<!--#") && whole != text {
			t.Errorf("%q became %q", text, whole)
		}
	})
}

func TestFormatTime(t *testing.T) {
	at := time.Date(2026, 1, 4, 15, 4, 5, 0, time.UTC) // a Sunday
	for format, want := range map[string]string{
		ssi.DefaultTime:           "Sunday, 04-Jan-2026 15:04:05 GMT",
		"%s":                      "1767539045",
		"%a %b %e %h %I %j %p %y": "Sun Jan  4 Jan 03 004 PM 26",
		"%u %w %U %W %V %G %g %C": "7 0 01 00 01 2026 26 20",
		"%k %l %R %T %D %F %z":    "15  3 15:04 15:04:05 01/04/26 2026-01-04 +0000",
		"100%% %n%t%Q %Ey %":      "100% \n\t%Q 26 %",
		strings.Repeat("%A", 999): "",
	} {
		if got := ssi.FormatTime(format, at); got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
	if got := ssi.FormatTime("%Z %l", at.In(time.FixedZone("CET", 3600)).Add(-15*time.Hour)); got != "CET  1" {
		t.Error(got)
	}
}
