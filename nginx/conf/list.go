package conf

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TableBegins and TableEnds enclose the table in the README.
const (
	TableBegins = "<!-- go generate: the table of directives -->\n"
	TableEnds   = "<!-- end of the table -->"
)

// Row is how culvert treats a directive.
type Row struct {
	// Name is the directive's name.
	Name string
	// Class is how culvert treats it.
	Class Class
	// Reason is why it is not implemented, or which value is accepted.
	Reason string
}

// inStreamOnly is the Reason of a directive that is implemented inside stream alone.
const inStreamOnly = "inside stream"

// Rows returns all known directives of nginx's open-source modules, by name. Those of a
// module that is refused as a whole are in one row, "js_…", and so are those that are treated as the proxy module's.
func (s Specs) Rows() []Row {
	rows := map[string]Row{}
	add := func(name string, class Class, reason string) { rows[name] = Row{name, class, reason} }
	for name, reason := range noOps {
		add(name, NoOp, reason)
	}
	for name, reason := range passed {
		add(name, Passed, reason)
	}
	for name, p := range passedUnless {
		add(name, Passed, p.reason+"; a no-op if it is `"+p.harmless+"`")
	}
	for name, reason := range refused {
		add(name, Refused, reason)
	}
	for name, values := range harmless {
		add(name, Refused, "accepted only as `"+strings.Join(values, "`, `")+"`")
	}
	for reason, names := range inside {
		for _, name := range names {
			add(name, Refused, reason)
		}
	}
	for _, m := range loaded {
		add(m.prefix+"…", Refused, m.reason)
	}
	for _, prefix := range likeProxy {
		add(prefix+"…", Passed, "as the `proxy_` directive of the same name")
	}
	for name, spec := range s {
		if _, known := rows[name]; spec.StreamOnly && known {
			continue
		}
		add(name, Implemented, map[bool]string{true: inStreamOnly}[spec.StreamOnly])
	}
	add("include", Implemented, "")
	return slices.SortedFunc(maps.Values(rows), func(a, b Row) int { return strings.Compare(a.Name, b.Name) })
}

// Table returns the directives by class, in Markdown.
func (s Specs) Table() string {
	var b strings.Builder
	for _, section := range []struct {
		class Class
		about string
	}{
		{Implemented, "Implemented, with nginx's semantics and its texts of errors"},
		{NoOp, "No-ops: they can be left out without a client or an upstream noticing; `-t` prints a notice"},
		{Passed, "Passed: accepted and not followed, which may be missed; `-t`, a start and a reload print a warning"},
		{Refused, "Refused: a configuration with one does not start"},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n", section.about)
		b.WriteString(s.tableOf(section.class))
		if section.class == Implemented {
			b.WriteString(s.streamTable())
			b.WriteString(s.ownTable())
		}
	}
	return b.String()
}

// tableOf returns a table with a line for each reason.
func (s Specs) tableOf(class Class) string {
	byReason := map[string][]string{}
	for _, row := range s.Rows() {
		if _, ours := own[row.Name]; row.Class == class && !ours {
			byReason[row.Reason] = append(byReason[row.Reason], "`"+row.Name+"`")
		}
	}
	var b strings.Builder
	if class == Implemented {
		b.WriteString("| directives |\n|---|\n| " + strings.Join(byReason[""], " ") + " |\n")
		return b.String()
	}
	b.WriteString("| directives | why |\n|---|---|\n")
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(byReason[reason], " "), reason)
	}
	return b.String()
}

// streamTable returns a table of the directives that are implemented inside stream.
func (s Specs) streamTable() string {
	var b strings.Builder
	b.WriteString("\n### Implemented inside `stream`\n\n| directives |\n|---|\n|")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if s[name].Stream != nil {
			b.WriteString(" `" + name + "`")
		}
	}
	b.WriteString(" |\n")
	return b.String()
}

// ownTable returns a table of the directives that nginx does not have.
func (s Specs) ownTable() string {
	var b strings.Builder
	b.WriteString("\n### culvert's own: nginx refuses a configuration with one\n\n| directive | what |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if _, ok := s[name]; ok {
			fmt.Fprintf(&b, "| `%s` | %s |\n", name, own[name].about)
		}
	}
	return b.String()
}
