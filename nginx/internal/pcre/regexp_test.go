package pcre_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/pcre"
)

// Patterns match as in PCRE, by the library that is fit for them.
func TestFind(t *testing.T) {
	none := []string(nil)
	const linear, backtracks = false, true
	for _, test := range []struct {
		pattern, subject string
		want             []string
		by               bool
	}{
		{`^/a(\d+)$`, "/a12", []string{"/a12", "12"}, linear},
		{`^/a(\d+)$`, "/a12\n", []string{"/a12\n", "12"}, linear}, // PCRE's "$" matches in front of a last line feed
		{`^/a(\d+)\z`, "/a12\n", none, linear},
		{`^/a(\d+)\Z`, "/a12\n", []string{"/a12\n", "12"}, linear},
		{`(?m)^a$`, "b\na\nc", []string{"a"}, linear},
		{`^a$`, "b\na\nc", none, linear},
		{`a.c`, "a\nc", none, linear},
		{`(?s)a.c`, "a\nc", []string{"a\nc"}, linear},
		{`(?<x>a)(b)(?P<y>c)(?'z'd)`, "abcd", []string{"abcd", "a", "b", "c", "d"}, linear},
		{`a|(b)`, "a", []string{"a", ""}, linear},
		{`[[:alpha:]_]+[^[:digit:]]`, "1a_b-", []string{"a_b-"}, linear},
		{`[[:^alpha:]]+`, "ab12", []string{"12"}, linear},
		{`[]a]+[^]]`, "]a]b", []string{"]a]b"}, linear},
		{`[a-\d]+`, "a-1", []string{"a-1"}, linear},
		{`[\w.-]+@[\w-]+`, "me.x@a-b", []string{"me.x@a-b"}, linear},
		{`[a\]b[]+`, "]b[", []string{"]b["}, linear},
		{`a\hb\Hc`, "a\tbxc", []string{"a\tbxc"}, linear},
		{`[\s]`, "\v", []string{"\v"}, linear},
		{`[\S]`, " \v", none, linear},
		{`a\vb\V`, "a\fbc", []string{"a\fbc"}, linear},
		{`\x2f\x{2F}\057\o{57}\cA\e`, "////\x01\x1b", []string{"////\x01\x1b"}, linear},
		{`\/\-\_\ \%\"`, `/-_ %"`, []string{`/-_ %"`}, linear},
		{`\Qa.b*\E+`, "a.b**", []string{"a.b**"}, linear},
		{`[\Qa-c\E]+`, "b-", []string{"-"}, linear},
		{"(?x) a b # comment\n c", "abc", []string{"abc"}, linear},
		{`a(?#comment)b`, "ab", []string{"ab"}, linear},
		{`(?U)a+(a*?)`, "aaa", []string{"aaa", "aa"}, linear},
		{`foo\Kbar`, "foobar", []string{"foobar"}, linear},
		{`a{2}{`, "aa{", []string{"aa{"}, linear},
		{`a{,2}`, "a{,2}", []string{"a{,2}"}, linear},
		{`a{1,}`, "aaa", []string{"aaa"}, linear},
		{`(?i)A(?-i)b`, "ab", []string{"ab"}, linear},
		{`(?i:A)B`, "ab", none, linear},
		{`(?i)(?^)a`, "A", none, linear},
		{`(*UTF8)é`, "é", []string{"é"}, linear},
		{`\N\C`, "a\n", []string{"a\n"}, linear},
		{`\pL\p{Lu}\P{L}`, "aB1", []string{"aB1"}, linear},
		{`[\p{Lu}b]+`, "aBb", []string{"Bb"}, linear},
		{`é+(.*)`, "éé/ü", []string{"éé/ü", "/ü"}, linear},
		{`\b\w+\b`, "-ab-", []string{"ab"}, linear},

		{`^(docker\/1\.(3|4|5(?!\.[0-9]-dev))|Go ).*$`, "docker/1.5.1-dev", none, backtracks},
		{`^(docker\/1\.(3|4|5(?!\.[0-9]-dev))|Go ).*$`, "docker/1.5.1", []string{"docker/1.5.1", "docker/1.5", "5"}, backtracks},
		{`^(docker\/1\.(3|4|5(?!\.[0-9]-dev))|Go ).*$`, "Go 1.1", []string{"Go 1.1", "Go ", ""}, backtracks},
		{`(?<=/)\w+(?=\.)`, "/a/b.c", []string{"b"}, backtracks},
		{`(?<!/)b`, "/b ab", []string{"b"}, backtracks},
		{`^(?=(a+))(b)?`, "aab", []string{"", "aa", ""}, backtracks},
		{`(a)(?<n>b)(c)\3\k<n>\1`, "abccba", []string{"abccba", "a", "b", "c"}, backtracks}, // numbers in order, with names
		{`(a)\g1\g{1}\g{-1}`, "aaaa", []string{"aaaa", "a"}, backtracks},
		{`(?<n>a)\k{n}\k'n'(?P=n)\g{n}`, "aaaaa", []string{"aaaaa", "a"}, backtracks},
		{`(a)\10`, "aa0", none, linear}, // \10 is an octal number where there are fewer groups
		{`(?>a+)b|a+c`, "aac", []string{"aac"}, backtracks},
		{`a++a`, "aaa", none, backtracks},
		{`(ab)*+b`, "ababb", []string{"ababb", "ab"}, backtracks},
		{`x[ab]{1,2}+b`, "xabb", []string{"xabb"}, backtracks},
		{`a\Rb`, "a\r\nb", []string{"a\r\nb"}, backtracks},
		{`(a)(?=$)`, "a\n", []string{"a", "a"}, backtracks},
		{`a{1001}`, strings.Repeat("a", 1001), []string{strings.Repeat("a", 1001)}, backtracks},
		{`[\x80-\xff]`, "aé", []string{"\xc3"}, backtracks}, // a byte, as in PCRE
		{`\xc3\xa9$`, "é", []string{"é"}, backtracks},
		{`(?!x)(é+)(.)`, "éü", []string{"é\xc3", "é", "\xc3"}, backtracks},
		{`(?!x)[é](.*)`, "é", []string{"é", "\xa9"}, backtracks},
		{`(?!x)[а-я](.)`, "б", []string{"б", "\xb1"}, backtracks},
		{`(?!x)\W\S\D[\W]`, "éé", []string{"éé"}, backtracks},
		{`(?!x)[a-z-[x]+`, "b[-x", []string{"b[-x"}, backtracks}, // no subtraction
		{`(?i)(?!x)K`, "\u212a", none, backtracks},
		{"(?!x)\xff", "\xff", []string{"\xff"}, backtracks},
	} {
		re, err := pcre.Compile(test.pattern, false)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if re.Backtracks() != test.by {
			t.Errorf("%s backtracks: %v", test.pattern, !test.by)
		}
		got, err := re.Find(test.subject)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s in %q: %q, %v, want %q", test.pattern, test.subject, got, err, test.want)
		}
		if matches, err := re.Matches(test.subject); err != nil || matches != (test.want != nil) {
			t.Errorf("%s matches %q: %v, %v", test.pattern, test.subject, matches, err)
		}
	}
}

// The cases of letters are not distinguished where that is wanted, and bytes outside of ASCII have none.
func TestFold(t *testing.T) {
	for pattern, subject := range map[string]string{`^aB[c-d]$`: "AbC", `^(?!x)aB[c-d]$`: "AbC", `^(a)\1$`: "aA"} {
		re, err := pcre.Compile(pattern, true)
		if err != nil {
			t.Fatal(err)
		}
		if matches, err := re.Matches(subject); !matches || err != nil {
			t.Errorf("%s does not match %s: %v", pattern, subject, err)
		}
	}
	re, err := pcre.Compile(`(?!x)É`, true)
	if err != nil {
		t.Fatal(err)
	}
	if matches, _ := re.Matches("é"); matches {
		t.Error("é has a case")
	}
}

func TestNames(t *testing.T) {
	for _, pattern := range []string{`(a)(?<n>b)(?P<m>c)`, `(?!x)(a)(?<n>b)(?P<m>c)`} {
		re, err := pcre.Compile(pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		if names := re.Names(); !slices.Equal(names, []string{"", "", "n", "m"}) || re.Groups() != 3 || re.String() != pattern {
			t.Errorf("%q, %d groups, %s", names, re.Groups(), re)
		}
	}
}

// What PCRE refuses is refused in its words, and what is not supported by its name.
func TestErrors(t *testing.T) {
	for pattern, want := range map[string]string{
		`(a`:             "missing closing parenthesis",
		`a)`:             "unmatched closing parenthesis",
		`[a`:             "missing terminating ] for character class",
		`[`:              "missing terminating ] for character class",
		`[b-a]`:          "range out of order in character class",
		`*a`:             "quantifier does not follow a repeatable item",
		`a**`:            "quantifier does not follow a repeatable item",
		`(|*)`:           "quantifier does not follow a repeatable item",
		`a{2,1}`:         "numbers out of order in {} quantifier",
		`a{65536}`:       "number too big in {} quantifier",
		`a\`:             `\ at end of pattern`,
		`[\`:             `\ at end of pattern`,
		`\y`:             `unrecognized character follows \`,
		`(?<1a>b)`:       "subpattern name expected",
		`(?<a`:           "syntax error in subpattern name (missing terminator?)",
		`(?<a>b)(?<a>c)`: "two named subpatterns have the same name (PCRE2_DUPNAMES not set)",
		`(?z)`:           "unrecognized character after (? or (?-",
		`(?`:             "unrecognized character after (? or (?-",
		`(?#`:            "missing ) after (?# comment",
		`\1`:             "reference to non-existent subpattern",
		`\k<a>`:          "reference to non-existent subpattern",
		`\x{100}`:        `character code point value in \x{} or \o{} is too large`,
		`[[:word1:]]`:    "unknown POSIX class name",
		`[[.a.]]`:        "POSIX collating elements are not supported",
		`[\R]`:           "escape sequence is invalid in character class",
	} {
		var wrong *pcre.SyntaxError
		if _, err := pcre.Compile(pattern, false); !errors.As(err, &wrong) || err.Error() != want {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
	for pattern, want := range map[string]string{
		`(a)(?1)`:      "recursion",
		`(?R)`:         "recursion",
		`(?-1)`:        "recursion",
		`(?<n>a)(?&n)`: "recursion",
		`(?|(a)|(b))`:  "(?| with groups of equal numbers",
		`(a)?(?(1)b)`:  "conditions (?(...)...)",
		`(*ACCEPT)`:    "verbs such as (*ACCEPT)",
		`(?n)a`:        "option (?n)",
		`\X`:           `\X`,
	} {
		var wrong *pcre.SyntaxError
		if _, err := pcre.Compile(pattern, false); err == nil || errors.As(err, &wrong) || err.Error() != want {
			t.Errorf("%s: %v, want %s", pattern, err, want)
		}
	}
}

// A match that takes exponential time is given up, with nginx's words for it.
func TestLimit(t *testing.T) {
	re, err := pcre.Compile(`^(?!x)(a+)+$`, false)
	if err != nil {
		t.Fatal(err)
	}
	subject := strings.Repeat("a", 60) + "!\n"
	var limit *pcre.LimitError
	if _, err := re.Find(subject); !errors.As(err, &limit) {
		t.Fatal(err)
	}
	if got := limit.Error(); !strings.HasPrefix(got, `pcre2_match() failed: -47 on "aaa`) || !strings.HasSuffix(got, `!\n" using "^(?!x)(a+)+$"`) {
		t.Error(got)
	}
	if _, err := re.Matches(subject); !errors.As(err, &limit) {
		t.Fatal(err)
	}
	deep, err := pcre.Compile(`^(?!x)(?:(a)|(b))*$`, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deep.Find(strings.Repeat("ab", 1<<20)); !errors.As(err, &limit) || len(err.Error()) > 1000 {
		t.Errorf("%.2000v", err)
	}
}
