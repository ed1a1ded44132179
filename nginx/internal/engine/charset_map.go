package engine

import (
	"strconv"
	"strings"

	"github.com/culvert-go/culvert/nginx/conf"
	"github.com/culvert-go/culvert/nginx/internal/engine/recode"
)

// charsets are those of a configuration. Their names ignore case.
type charsets struct {
	known  map[string]bool
	tables map[[2]string]recode.Table // from the first to the second
}

func newCharsets() charsets {
	return charsets{map[string]bool{}, map[[2]string]recode.Table{}}
}

func (c charsets) add(name string) { c.known[strings.ToLower(name)] = true }

func (c charsets) table(from, to string) (recode.Table, bool) {
	t, ok := c.tables[[2]string{strings.ToLower(from), strings.ToLower(to)}]
	return t, ok
}

const utf8Name = "utf-8"

// charsetMap compiles "charset_map charset1 charset2 { … }" with a pair of codes on each line.
func charsetMap(c *compiler, _ *level, d *conf.Directive) error {
	from, to := strings.ToLower(d.Args[0]), strings.ToLower(d.Args[1])
	all := c.engine.charsets
	switch _, known := all.table(from, to); {
	case from == to:
		return d.Errorf("\"charset_map\" between the same charsets \"%s\" and \"%s\"", d.Args[0], d.Args[1])
	case from == utf8Name:
		return d.Errorf("\"charset_map\" with \"utf-8\" charset should be given in the second column")
	case known:
		return d.Errorf("duplicate \"charset_map\" between \"%s\" and \"%s\"", d.Args[0], d.Args[1])
	}
	m := recode.NewMap(to == utf8Name)
	for _, row := range d.Block {
		if err := charsetPair(m, row); err != nil {
			return err
		}
	}
	all.add(from)
	all.add(to)
	all.tables[[2]string{from, to}], all.tables[[2]string{to, from}] = m.Forward(), m.Backward()
	return nil
}

// charsetPair adds "80 E282AC;": a byte, and the code of the same character in the other charset.
func charsetPair(m *recode.Map, row *conf.Directive) error {
	if len(row.Args) != 1 {
		return row.Errorf("invalid parameters number")
	}
	from, err := strconv.ParseUint(row.Name, 16, 8)
	if err != nil {
		return row.Errorf("invalid value \"%s\"", row.Name)
	}
	if err := m.Add(byte(from), hexBytes(row.Args[0])); err != nil {
		return row.Errorf("invalid value \"%s\"", row.Args[0])
	}
	return nil
}

// hexBytes returns the bytes of a code; "" if it is none.
func hexBytes(code string) string {
	if len(code)%2 == 1 {
		code = "0" + code
	}
	var b []byte
	for ; code != ""; code = code[2:] {
		n, err := strconv.ParseUint(code[:2], 16, 8)
		if err != nil {
			return ""
		}
		b = append(b, byte(n))
	}
	return string(b)
}
