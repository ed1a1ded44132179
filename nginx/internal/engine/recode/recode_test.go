package recode_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/culvert-go/culvert/nginx/internal/engine/recode"
)

// run writes text in pieces of size bytes.
func run(t recode.Table, text string, size int) string {
	var out strings.Builder
	w := t.NewWriter(&out)
	for len(text) > 0 {
		n := min(size, len(text))
		_, _ = w.Write([]byte(text[:n]))
		text = text[n:]
	}
	_ = w.Close()
	return out.String()
}

func TestRecode(t *testing.T) {
	single, utf := recode.NewMap(false), recode.NewMap(true)
	for from, to := range map[byte]string{'X': "Y", 0xe0: "\xc0"} {
		if err := single.Add(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[byte]string{0x80: "€", 0xe4: "ä"} {
		if err := utf.Add(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name       string
		table      recode.Table
		text, want string
	}{
		{"bytes", single.Forward(), "aX\xe0\xe1", "aY\xc0?"},
		{"bytes, back", single.Backward(), "aY\xc0\xe0", "aX\xe0?"},
		{"to UTF-8", utf.Forward(), "a\x80\xe4\xe5", "a€ä?"},
		{"from UTF-8", utf.Backward(), "a€äй😀", "a\x80\xe4&#1081;&#128512;"},
		{"malformed", utf.Backward(), "\xe2\x82<b>\xff\xc3", "??<b>??"},
	} {
		for size := 1; size <= len(test.text); size++ {
			if got := run(test.table, test.text, size); got != test.want {
				t.Errorf("%s by %d: %q, want %q", test.name, size, got, test.want)
			}
		}
	}
	if !single.Forward().KeepsLength() || utf.Forward().KeepsLength() || utf.Backward().KeepsLength() {
		t.Error("lengths")
	}
}

func TestPairsThatAreNone(t *testing.T) {
	for _, to := range []string{"", "ab", "ä"} {
		if recode.NewMap(false).Add('a', to) == nil {
			t.Errorf("a byte is %q", to)
		}
	}
	for _, to := range []string{"", "ab", "\xff", "😀", "\xe2\x82"} {
		if recode.NewMap(true).Add('a', to) == nil {
			t.Errorf("a character is %q", to)
		}
	}
}

// What is converted does not depend on how the stream is split, and a whole map leads back.
func FuzzRecode(f *testing.F) {
	f.Add("text ä€ and more", 3)
	f.Add("\xe2\x82 \xff", 1)
	latin := recode.NewMap(true)
	for c := 0x80; c < 0x100; c++ {
		if err := latin.Add(byte(c), string(rune(c))); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		if size < 1 {
			return
		}
		if whole, split := run(latin.Backward(), text, len(text)+1), run(latin.Backward(), text, size); whole != split {
			t.Errorf("%q by %d: %q, want %q", text, size, split, whole)
		}
		encoded := run(latin.Forward(), text, size)
		if back := run(latin.Backward(), encoded, size); back != text || !utf8.ValidString(encoded) {
			t.Errorf("%q is %q and back %q", text, encoded, back)
		}
	})
}
