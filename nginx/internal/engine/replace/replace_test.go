package replace_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/nginx/internal/engine/replace"
)

func run(text string, once bool, size int, pairs ...replace.Pair) string {
	var out strings.Builder
	w := replace.NewWriter(&out, once, pairs)
	for len(text) > 0 {
		n := min(size, len(text))
		_, _ = w.Write([]byte(text[:n]))
		text = text[n:]
	}
	_ = w.Close()
	return out.String()
}

func TestReplace(t *testing.T) {
	for _, test := range []struct {
		text, want string
		once       bool
		pairs      []replace.Pair
	}{
		{"a </HEAD> b </head>", "a X b X", false, []replace.Pair{{"</head>", "X"}}},
		{"a </HEAD> b </head>", "a X b </head>", true, []replace.Pair{{"</Head>", "X"}}},
		{"aab", "Xb", false, []replace.Pair{{"aa", "X"}}},
		{"aaab", "aX", false, []replace.Pair{{"aab", "X"}}},
		{"ab abc", "1 1c", false, []replace.Pair{{"ab", "1"}, {"abc", "2"}}},
		{"ab abc", "ab 2", false, []replace.Pair{{"abc", "2"}}},
		{"abab", "12", true, []replace.Pair{{"ab", "1"}, {"AB", "2"}}},
		{"</hea", "</hea", false, []replace.Pair{{"</head>", "X"}}},
		{"xx<<<y", "xx<<!", false, []replace.Pair{{"<y", "!"}}},
		{"end ab", "end -", false, []replace.Pair{{"abc", "?"}, {"ab", "-"}}},
	} {
		for size := 1; size <= len(test.text); size++ {
			if got := run(test.text, test.once, size, test.pairs...); got != test.want {
				t.Errorf("%q by %d: %q, want %q", test.text, size, got, test.want)
			}
		}
	}
}

// A single text is replaced as regexp replaces it, regardless of how the stream is split.
func FuzzReplace(f *testing.F) {
	f.Add("some <b>text</B> here", "<b>", 3)
	f.Add("aaaaab", "aab", 1)
	f.Fuzz(func(t *testing.T, text, from string, size int) {
		if from == "" || size < 1 || strings.ContainsFunc(from+text, func(r rune) bool { return r >= 0x80 }) {
			return
		}
		want := regexp.MustCompile("(?i)"+regexp.QuoteMeta(from)).ReplaceAllLiteralString(text, "<new>")
		if got := run(text, false, size, replace.Pair{From: from, To: "<new>"}); got != want {
			t.Errorf("%q in %q by %d: %q, want %q", from, text, size, got, want)
		}
	})
}
