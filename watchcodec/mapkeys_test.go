package watchcodec_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/culvert-go/culvert/watchcodec"
)

// TestSetKeepsTheOrderOfKeys: a key that is set in a map is placed where encoders place it, by its
// text and not by its spelling in JSON: with its quote "a" would sort after "a!", and an escaped
// "<x" after "A".
func TestSetKeepsTheOrderOfKeys(t *testing.T) {
	keys := []string{"", "!", "A", "A!", "A B", "<", "<x", "\\", `a"b`, "a", "a!", "\u00e9", "\u2028", "\U0001f41f", "\x01"}
	for _, first := range keys {
		for _, second := range keys {
			want := map[string]string{first: "1"}
			text, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": want}})
			if err != nil {
				t.Fatal(err)
			}
			var o watchcodec.Object
			if err := o.Parse(watchcodec.JSON, "v1", "Pod", text); err != nil {
				t.Fatal(err)
			}
			want = maps.Clone(want)
			want[second] = "2"
			if text, err = json.Marshal(map[string]any{"metadata": map[string]any{"annotations": want}}); err != nil {
				t.Fatal(err)
			}
			if err := o.Edit(watchcodec.Set("2", watchcodec.Annotation(second)...)); err != nil || string(o.Value().Raw()) != string(text) {
				t.Errorf("%q beside %q: %s, want %s: %v", second, first, o.Value().Raw(), text, err)
			}
		}
	}
}
