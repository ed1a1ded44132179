package scan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/watchcodec/internal/scan"
)

// A key that encoding/json takes for a name is that name, or an error.
func TestKnown(t *testing.T) {
	names := []string{"kind", "namespace", "items"}
	for key, want := range map[string]string{
		`kind`: "kind", `k\u0069nd`: "kind", `items`: "items", `kinds`: "", `\"kind`: "", ``: "", "kınd": "", "\u00e9": "",
		`Kind`: "error", `K\u0069nd`: "error", "\u212aind": "error", `\u212aind`: "error", "name\u017fpace": "error", "item\u017f": "error", `ITEM\u017f`: "error",
	} {
		got, err := scan.Known([]byte(`"`+key+`"`), names...)
		if got != want && !(want == "error" && errors.Is(err, scan.ErrJSON)) || (err != nil) != (want == "error") {
			t.Errorf("%s: %q, %v, want %q", key, got, err, want)
		}
		var decoded struct{ Kind, Namespace, Items string }
		if err := json.Unmarshal([]byte(`{"`+key+`":"x"}`), &decoded); err != nil {
			t.Fatal(err)
		}
		if taken := decoded.Kind+decoded.Namespace+decoded.Items != ""; taken != (want != "") {
			t.Errorf("%s: encoding/json takes it for a name: %v", key, taken)
		}
	}
}

// A key that is there twice is an error, however it is escaped, also if there are many keys.
func TestKeysTwice(t *testing.T) {
	for _, before := range []int{0, 5, 30} {
		for _, test := range []struct {
			first, second string
			ok            bool
		}{
			{`spec`, `spec`, false}, {`spec`, `sp\u0065c`, false}, {`sp\u0065c`, `spec`, false}, {`sp\u0065c`, `\u0073pec`, false}, {`a\/b`, `a/b`, false},
			{`spec`, `Spec`, true}, {`a\\b`, `a\/b`, true},
		} {
			var k scan.Keys
			for i := range before {
				if err := k.Add(fmt.Appendf(nil, `"key%d"`, i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := k.Add([]byte(`"` + test.first + `"`)); err != nil {
				t.Errorf("%s: %v", test.first, err)
			}
			if err := k.Add([]byte(`"` + test.second + `"`)); (err == nil) != test.ok || err != nil && !strings.Contains(err.Error(), "twice") {
				t.Errorf("%s behind %s and %d others: %v", test.second, test.first, before, err)
			}
		}
	}
}
