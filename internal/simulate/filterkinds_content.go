package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/culvert-go/culvert"
	"github.com/culvert-go/culvert/filters"
)

// compressKind: a response of a compressible type and of a minimum size is encoded in the coding that its client prefers.
var compressKind = filterKind{
	name: "Compress",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) {
		o := filters.CompressOptions{GzipLevel: p.B}
		switch p.A {
		case 1:
			o.Encodings = []string{"gzip"}
		case 2:
			o.MinSize = 1
		case 3:
			o.ContentTypes = []string{"application/*"}
		}
		return filters.Compress(o)
	},
	response: func(p FilterPlan, q *hop, m *message) {
		if m.status == 204 || m.status == 304 || m.coding != "" || !compresses(p, m) {
			return
		}
		refusal := m.replaced && m.body == nil // of HEAD, too: the header may have its length
		if m.length < 0 && (refusal || !m.bodyless(q) && (m.body == nil || len(m.body()) == 0)) {
			m.loose, m.changed = true, true // whether there is content, and how long a refusal is, may or may not be known at the header
			return
		}
		if at := m.header["Vary"]; !strings.Contains(at, "Accept-Encoding") {
			m.header["Vary"] = "Accept-Encoding"
		}
		if m.coding = liked(q.accept, p.A == 1); m.coding != "" {
			m.acts("Compress")
			m.length, m.changed, m.encoded = -1, true, true
		}
	},
}

// compresses reports whether a response's type and length are those of Compress.
func compresses(p FilterPlan, m *message) bool {
	least := int64(1024)
	if p.A == 2 {
		least = 1
	}
	fits := strings.HasPrefix(m.media, "text/") || m.media == kubeJSON
	if p.A == 3 {
		fits = strings.HasPrefix(m.media, "application/")
	}
	return (m.length < 0 || m.length >= least) && fits
}

// liked returns the content coding that a client prefers (RFC 9110 section 12.5.3).
func liked(accept string, gzipAlone bool) string {
	switch {
	case accept == "gzip", accept == "zstd, gzip;q=0.5" && gzipAlone:
		return "gzip"
	case accept == "zstd, gzip;q=0.5", accept == "gzip;q=0, *" && !gzipAlone:
		return "zstd"
	}
	return ""
}

// decompressKind decodes the content codings that it knows.
var decompressKind = filterKind{
	name: "Decompress",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) {
		o := filters.DecompressOptions{Requests: p.A != 1, Responses: p.A != 2}
		if p.B == 1 {
			o.MaxRequest = 1000
		}
		return filters.Decompress(o)
	},
	request: func(p FilterPlan, q *hop) {
		switch {
		case p.A == 1 || q.coding == "" || !q.e.hasBody():
			return
		case q.coding == "br":
			q.refuse(http.StatusUnsupportedMediaType)
			return
		}
		q.coding, q.sized, q.length = "", false, q.e.Body.Length
		if p.B == 1 && q.length > 1000 {
			q.tooLong()
		}
	},
	response: func(p FilterPlan, q *hop, m *message) {
		m.decodes = m.decodes || p.A != 2 && m.loose
		if p.A != 2 && (m.coding == "gzip" || m.coding == "zstd") {
			m.acts("Decompress")
			m.coding, m.length, m.changed = "", -1, true
			m.ends, m.encoded = m.ends || !m.encoded, false
			m.cut = m.cut || m.half && !m.replaced && !m.bodyless(q) // the content that ends early is the target's
		}
	},
}

// bodyLimitKind refuses bodies that are longer than its limit.
var bodyLimitKind = filterKind{
	name: "BodyLimit",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) { return filters.BodyLimit(p.bodyLimit()) },
	request: func(p FilterPlan, q *hop) {
		switch {
		case q.length <= p.bodyLimit():
		case q.sized:
			q.refuse(http.StatusRequestEntityTooLarge)
		default:
			q.tooLong()
		}
	},
}

// bodyLimit returns the limit of a BodyLimit.
func (p FilterPlan) bodyLimit() int64 {
	return [filterOptions]int64{250_000, 1000, 20, 0, 10_000, 2_000}[p.A]
}

// tooLong records that a read of the body fails, so that no target sees all of it.
func (q *hop) tooLong() {
	q.over = true
	q.may = append(q.may, http.StatusRequestEntityTooLarge)
}

// errorPagesKind serves pages in place of some responses.
var errorPagesKind = filterKind{
	name: "ErrorPages",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) {
		return filters.ErrorPages(func(status int) http.Handler {
			if !p.hasPage(status) {
				return nil
			}
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusOK) // which is not used
				_, _ = w.Write(p.page(status))
			})
		}), nil
	},
	response: func(p FilterPlan, _ *hop, m *message) {
		if !p.hasPage(m.status) {
			return
		}
		m.acts("ErrorPages")
		page := p.page(m.status)
		m.replace("text/html")
		m.discards = true
		m.body = func() []byte { return page }
	},
}

// hasPage reports whether ErrorPages has a page for a status.
func (p FilterPlan) hasPage(status int) bool {
	return status == 404 || status == 503 && p.A%2 == 0 || status == 302 && p.A == 3
}

// page returns a page, a long one for some.
func (p FilterPlan) page(status int) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "<p>page of %d</p>\n", status), 1+p.B*p.B*10)
}

// recordsKind sends each record as a piece of its own, and may edit it.
var recordsKind = filterKind{
	name: "Records",
	make: func(_ *gateway, p FilterPlan) (culvert.Filter, error) {
		o := filters.RecordsOptions{}
		if p.edits() {
			o.Rewrite = func(*http.Request) func([]byte) ([]byte, error) {
				return func(record []byte) ([]byte, error) {
					if bytes.Contains(record, refusedRecord) {
						return nil, errors.New("refused, as planned")
					}
					return editRecord(record), nil
				}
			}
		}
		if p.A == 2 || p.A == 3 {
			o.MaxRecord = longestRecord
		}
		return filters.Records(o)
	},
	request:  func(_ FilterPlan, q *hop) { q.accept = "" },
	response: func(p FilterPlan, q *hop, m *message) { p.records(q, m) },
}

const longestRecord = 120

var refusedRecord = []byte(" 19 of ")

// edits reports whether a Records filter edits.
func (p FilterPlan) edits() bool { return p.A%2 == 1 }

// editRecord returns an edited record. Every tenth is dropped.
func editRecord(record []byte) []byte {
	if bytes.Contains(record, []byte("7 of ")) {
		return nil
	}
	return append([]byte("E "), record...)
}

// records applies a Records filter to a response.
func (p FilterPlan) records(q *hop, m *message) {
	events := m.media == mediaTypes[MediaEvents]
	if !events && m.media != mediaTypes[MediaLines] || m.status < 200 || m.status > 299 {
		return
	}
	switch {
	case m.coding != "" && p.edits():
		m.acts("Records refuses")
		m.status = http.StatusBadGateway
		m.replace("text/plain; charset=utf-8")
		m.discards = true
		m.body = nil
		return
	case m.coding != "":
		return
	}
	m.acts("Records")
	m.length = -1
	if m.bodyless(q) {
		return
	}
	var out []byte
	var cut bool // by this filter, and not by an inner one
	for _, record := range splitRecords(m.body(), events) {
		content := bytes.TrimRight(record, "\n")
		switch {
		case (p.A == 2 || p.A == 3) && len(content) > longestRecord, p.edits() && bytes.Contains(content, refusedRecord):
			cut = true
		case p.edits() && len(content) > 0:
			m.edited = true
			if edited := editRecord(content); edited != nil {
				out = append(append(out, edited...), record[len(content):]...)
			}
		default:
			out = append(out, record...)
		}
		if cut {
			break
		}
	}
	m.changed, m.cut = true, m.cut || cut
	m.body = func() []byte { return out }
}

// splitRecords splits lines, or events, each of which ends with an empty line.
func splitRecords(p []byte, events bool) (list [][]byte) {
	var record []byte
	for line := range bytes.SplitAfterSeq(p, []byte("\n")) {
		if record = append(record, line...); len(line) > 0 && (!events || len(line) == 1) {
			list, record = append(list, record), nil
		}
	}
	if len(record) > 0 {
		list = append(list, record)
	}
	return list
}
