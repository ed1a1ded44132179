package watchcodec

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Negotiate returns the Accept field of a request to a Kubernetes API server, so that the response
// has a format that can be edited here: of the formats that the client accepts, JSON and protobuf,
// as whole objects or as PartialObjectMetadata, in the order of the client's preference. A wildcard
// becomes JSON. ok is false if the client accepts none of them, which calls for a 406. accept holds
// the lines of the client's field; if there are none, the client accepts any format (as in
// k8s.io/apiserver/pkg/endpoints/handlers/negotiation).
//
// A Table is not among the formats (but see FilterOptions.Tables): a client that requests one with
// JSON as the alternative, as kubectl does, gets the objects and prints them by itself.
func Negotiate(accept []string) (upstream string, ok bool) { return negotiate(accept, false) }

func negotiate(accept []string, tables bool) (upstream string, ok bool) {
	all := strings.Join(accept, ",")
	if strings.TrimSpace(all) == "" {
		return jsonType, true
	}
	var clauses []clause
	for text := range strings.SplitSeq(all, ",") {
		if c, ok := parseClause(text, tables); ok {
			clauses = append(clauses, c)
		}
	}
	slices.SortStableFunc(clauses, func(a, b clause) int { return cmp.Compare(b.quality, a.quality) })
	var kept []string
	for _, c := range clauses {
		if !slices.Contains(kept, c.text) {
			kept = append(kept, c.text)
		}
	}
	return strings.Join(kept, ", "), len(kept) > 0
}

const jsonType = "application/json"

// clause is one media type that a client accepts.
type clause struct {
	text    string // without its quality, which the order shows
	quality float64
}

// parseClause parses one clause. ok is false for a format that the client refuses or that can't be
// edited.
func parseClause(text string, tables bool) (c clause, ok bool) {
	parts := strings.Split(text, ";")
	c.quality = 1
	switch media := strings.ToLower(strings.TrimSpace(parts[0])); media {
	case "*/*", "application/*":
		c.text = jsonType
	case jsonType, protobufType:
		c.text = media
	default:
		return c, false
	}
	for _, p := range parts[1:] {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		switch strings.ToLower(name) {
		case "q":
			q, err := strconv.ParseFloat(value, 64)
			if err != nil || !(q > 0) {
				return c, false
			}
			c.quality = min(q, 1)
			continue
		case "as":
			if value != "PartialObjectMetadata" && value != "PartialObjectMetadataList" && !(value == tableKind && tables && c.text == jsonType) {
				return c, false
			}
		case "stream", "pretty": // chosen by the server, and irrelevant here
			continue
		}
		c.text += ";" + name + "=" + value
	}
	return c, true
}

// FormatOf returns the format of a response by its Content-Type. ok is false for a type that is
// neither JSON nor protobuf.
func FormatOf(contentType string) (f Format, ok bool) {
	media, _, _ := strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case jsonType:
		return JSON, true
	case protobufType:
		return Protobuf, true
	}
	return JSON, false
}

// ContentType returns the Content-Type of an object or a list.
func (f Format) ContentType() string {
	if f == Protobuf {
		return protobufType
	}
	return jsonType
}

// WatchContentType returns the Content-Type of a watch.
func (f Format) WatchContentType() string {
	if f == Protobuf {
		return protobufType + ";stream=watch"
	}
	return jsonType
}
