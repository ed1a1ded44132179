package listing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/listing"
)

// july is 2024-07-01 22:30:05 UTC.
const july = 1719873005

var entries = []listing.Entry{
	{Name: "a & b", Dir: true, Modified: july, Size: 4096},
	{Name: `<q">`, File: true, Modified: july, Size: 12345},
	{Name: "pipe", Modified: -1},
}

func TestHTML(t *testing.T) {
	const head = "<html>\r\n<head><title>Index of /&lt;/</title></head>\r\n<body>\r\n<h1>Index of /&lt;/</h1><hr><pre><a href=\"../\">../</a>\r\n"
	const tail = "</pre><hr></body>\r\n</html>\r\n"
	tests := []struct {
		page listing.Page
		rows []string
	}{
		{listing.Page{}, []string{
			`<a href="a%20%26%20b/">a &amp; b/</a>` + blanks(44) + ` 01-Jul-2024 22:30                   -`,
			`<a href="%3Cq%22%3E">&lt;q&quot;&gt;</a>` + blanks(46) + ` 01-Jul-2024 22:30               12345`,
			`<a href="pipe">pipe</a>` + blanks(46) + ` 01-Jan-1970 00:00                   0`,
		}},
		{listing.Page{Rounded: true, Offset: 2 * 3600}, []string{
			`<a href="a%20%26%20b/">a &amp; b/</a>` + blanks(44) + ` 02-Jul-2024 00:30       -`,
			`<a href="%3Cq%22%3E">&lt;q&quot;&gt;</a>` + blanks(46) + ` 02-Jul-2024 00:30     12K`,
			`<a href="pipe">pipe</a>` + blanks(46) + ` 01-Jan-1970 01:59       0`,
		}},
	}
	for _, tt := range tests {
		var got strings.Builder
		tt.page.URI = "/</"
		if err := tt.page.HTML(&got, entries); err != nil {
			t.Fatal(err)
		}
		if want := head + strings.Join(tt.rows, "\r\n") + "\r\n" + tail; got.String() != want {
			t.Errorf("%+v\n got %q\nwant %q", tt.page, got.String(), want)
		}
	}
}

func blanks(n int) string { return strings.Repeat(" ", n) }

// The column of a name has fifty characters, or bytes if the page or the name is not in UTF-8.
func TestColumn(t *testing.T) {
	long := func(s string, n int) string { return strings.Repeat(s, n) }
	tests := []struct {
		name string
		dir  bool
		utf8 bool
		want string
	}{
		{long("n", 49), true, false, long("n", 49) + "/</a> "},
		{long("n", 50), true, false, long("n", 50) + "</a> "},
		{long("n", 50), false, false, long("n", 50) + "</a> "},
		{long("n", 51), false, false, long("n", 47) + "..&gt;</a> "},
		{long("&", 51), false, true, long("&amp;", 47) + "..&gt;</a> "},
		{long("é", 25), false, false, long("é", 25) + "</a> "},
		{long("é", 25), false, true, long("é", 25) + "</a>" + blanks(26)},
		{long("é", 26), false, false, long("é", 23) + "\xc3..&gt;</a> "},
		{long("é", 51), false, true, long("é", 47) + "..&gt;</a> "},
		{long("日", 49), true, true, long("日", 49) + "/</a> "},
		{"😀", false, true, "😀</a>" + blanks(50)},
		{"\xff" + long("é", 25), false, true, "\xff" + long("é", 23) + "..&gt;</a> "}, // no UTF-8: bytes
		{"é\xc3", false, true, "é\xc3</a>" + blanks(48)},                              // cut off
		{"\xe9\xe8\xea", false, true, "\xe9\xe8\xea</a>" + blanks(50)},                // one character to nginx
		{"\xed\xa0\x80", false, true, "\xed\xa0\x80</a>" + blanks(50)},                // a surrogate
		{"\xc0\x80", false, true, "\xc0\x80</a>" + blanks(49)},                        // overlong
		{"\xe0\x80\x80", false, true, "\xe0\x80\x80</a>" + blanks(48)},
		{"\xf4\x90\x80\x80", false, true, "\xf4\x90\x80\x80</a>" + blanks(47)}, // above Unicode
		{"é" + "x\x7f", false, true, "é" + "x\x7f</a>" + blanks(48)},
		{"\xc3x", false, true, "\xc3x</a>" + blanks(49)},
	}
	for _, tt := range tests {
		var got strings.Builder
		if err := (listing.Page{UTF8: tt.utf8}).HTML(&got, []listing.Entry{{Name: tt.name, Dir: tt.dir}}); err != nil {
			t.Fatal(err)
		}
		_, row, _ := strings.Cut(got.String(), "../</a>\r\n<a href=\"")
		_, row, _ = strings.Cut(row, "\">")
		if row, _, _ = strings.Cut(row, "01-Jan-1970"); row != tt.want {
			t.Errorf("%q\n got %q\nwant %q", tt.name, row, tt.want)
		}
	}
}

func TestRoundedSizes(t *testing.T) {
	for size, want := range map[int64]string{
		0: "      0", 9999: "   9999", 10000: "    10K", 10239: "    10K", 10751: "    10K", 10752: "    11K", 1<<20 - 1: "  1024K", 1 << 20: "     1M",
		1<<20 + 1<<19 - 1: "     1M", 1<<20 + 1<<19: "     2M", 1<<30 - 1: "  1024M", 1 << 30: "     1G", 1<<30 + 1<<29 - 1: "     1G", 1<<30 + 1<<29: "     2G",
	} {
		var got strings.Builder
		if err := (listing.Page{Rounded: true}).HTML(&got, []listing.Entry{{Name: "x", Size: size}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(got.String(), " 01-Jan-1970 00:00 "+want+"\r\n") {
			t.Errorf("%d: want %q, got %s", size, want, got.String())
		}
	}
}

func TestData(t *testing.T) {
	const array = "[\r\n" + `{ "name":"a & b", "type":"directory", "mtime":"Mon, 01 Jul 2024 22:30:05 GMT" },` + "\r\n" +
		`{ "name":"<q\">", "type":"file", "mtime":"Mon, 01 Jul 2024 22:30:05 GMT", "size":12345 },` + "\r\n" +
		`{ "name":"pipe", "type":"other", "mtime":"Thu, 01 Jan 1970 00:00:00 GMT" }` + "\r\n]"
	const list = "<?xml version=\"1.0\"?>\r\n<list>\r\n"
	tests := []struct {
		about string
		write func(*strings.Builder) error
		want  string
	}{
		{"JSON", func(b *strings.Builder) error { return listing.JSON(b, entries, "") }, array},
		{"JSONP", func(b *strings.Builder) error { return listing.JSON(b, entries, "f.g") }, "/* callback */\r\nf.g(" + array + ");"},
		{"JSON of nothing", func(b *strings.Builder) error { return listing.JSON(b, nil, "") }, "[\r\n]"},
		{"XML", func(b *strings.Builder) error { return listing.XML(b, entries) }, list +
			`<directory mtime="2024-07-01T22:30:05Z">a &amp; b</directory>` + "\r\n" +
			`<file mtime="2024-07-01T22:30:05Z" size="12345">&lt;q&quot;&gt;</file>` + "\r\n" +
			`<other mtime="1970-01-01T00:00:00Z">pipe</other>` + "\r\n</list>\r\n"},
		{"XML of nothing", func(b *strings.Builder) error { return listing.XML(b, nil) }, list + "</list>\r\n"},
	}
	for _, tt := range tests {
		var got strings.Builder
		if err := tt.write(&got); err != nil {
			t.Fatal(err)
		}
		if got.String() != tt.want {
			t.Errorf("%s\n got %q\nwant %q", tt.about, got.String(), tt.want)
		}
	}
}

// open opens a directory for Read.
func open(t *testing.T, name string) *os.File {
	t.Helper()
	dir, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

func unexpected(t *testing.T) func(string) {
	return func(name string) { t.Errorf("%s could not be looked at", name) }
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	var faults []error
	for _, name := range []string{"b", "B", "a10", "a9", "é", ".hidden", "..."} {
		faults = append(faults, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644))
	}
	for _, name := range []string{"z", ".git"} {
		faults = append(faults, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	for link, to := range map[string]string{"folder": "z", "file": "a10", "nowhere": "none", "itself": "itself", "through a file": "b/x"} {
		faults = append(faults, os.Symlink(to, filepath.Join(dir, link)))
	}
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	list, err := listing.Read(t.Context(), open(t, dir), unexpected(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		kind := "other"
		if e.Dir {
			kind = "dir"
		} else if e.File {
			kind = fmt.Sprint(e.Size)
		}
		got = append(got, e.Name+":"+kind)
	}
	want := []string{"folder:dir", "z:dir", "B:1", "a10:3", "a9:2", "b:1", "file:3", "itself:other", "nowhere:other", "through a file:other", "é:2"}
	if !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

// Names are read in batches, and all of them are returned.
func TestReadMany(t *testing.T) {
	dir := t.TempDir()
	const n = 3000
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	list, err := listing.Read(t.Context(), open(t, dir), unexpected(t))
	if err != nil || len(list) != n || list[0].Name != "000000" || list[n-1].Name != "002999" {
		t.Errorf("%d entries, %v", len(list), err)
	}
}

// A client that has disconnected ends the reading.
func TestReadAfterDisconnect(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := listing.Read(ctx, open(t, t.TempDir()), unexpected(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestReadFails(t *testing.T) {
	dir := open(t, t.TempDir())
	dir.Close()
	if _, err := listing.Read(t.Context(), dir, unexpected(t)); err == nil {
		t.Error("a closed directory was read")
	}
}

// full is a client that accepts no more bytes.
type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWritingFails(t *testing.T) {
	for about, err := range map[string]error{
		"HTML": listing.Page{}.HTML(full{}, entries), "JSON": listing.JSON(full{}, entries, ""), "XML": listing.XML(full{}, entries),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v", about, err)
		}
	}
}
