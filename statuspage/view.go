package statuspage

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strconv"
	"time"
)

//go:embed page.js
var script []byte

//go:embed page.css
var style []byte

//go:embed page.html
var pageText string

var templates = template.Must(template.New("page").Funcs(template.FuncMap{"age": age, "size": size, "rate": rate}).Parse(pageText))

// view is a snapshot and its content as HTML, which all streams share.
type view struct {
	at       time.Time // zero: there is none
	snapshot Snapshot
	contents [2][]byte // without and with buttons; nil: not made yet
}

// current returns the last view, or a new one if that is too old. The caller holds p.mu.
func (p *Page) current() *view {
	if at := time.Now(); p.last.at.IsZero() || at.Sub(p.last.at) >= p.o.Interval/2 {
		p.last = view{at: at, snapshot: p.collect(at)}
	}
	return &p.last
}

// content returns the content of the page, with buttons if control is true.
func (p *Page) content(control bool) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, i := p.current(), 0
	if control {
		i = 1
	}
	if v.contents[i] == nil {
		var b bytes.Buffer
		if err := templates.ExecuteTemplate(&b, "content", map[string]any{"Snapshot": &v.snapshot, "Control": control}); err != nil {
			return nil, err
		}
		v.contents[i] = b.Bytes()
	}
	return v.contents[i], nil
}

// page returns the whole page.
func (p *Page) page(control bool) ([]byte, error) {
	content, err := p.content(control)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = templates.ExecuteTemplate(&b, "page", map[string]any{"Title": p.o.Title, "Content": template.HTML(content)})
	return b.Bytes(), err
}

// age formats seconds: "12 s", "3 min 5 s", "2 h 3 min", "4 d 5 h".
func age(seconds float64) string {
	s := int64(seconds)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %d h", s/(24*3600), s/3600%24)
}

// size formats a number of bytes.
func size(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, units := float64(n)/1024, "KMGTP"
	for f >= 1024 && len(units) > 1 {
		f, units = f/1024, units[1:]
	}
	return fmt.Sprintf("%.1f %ciB", f, units[0])
}

// rate formats a number per second.
func rate(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) + "/s" }
