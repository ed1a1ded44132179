package simulate

import "testing"

// A client that has left has read a part of the last event, which is an ERROR event or the rule breaks.
func TestMatchPartOfErrorEvent(t *testing.T) {
	for _, c := range []struct {
		proto, fits bool
		got         string
	}{
		{false, true, ""},
		{false, true, `{"ty`},
		{false, true, `{"type":"ERROR","object":{"kind":"Sta`},
		{false, false, `{"type":"ADDED","object":{"kind":"Ca`},
		{true, true, "\x00\x00\x00\x90\x0a\x05ERR"},
		{true, true, "\x00\x00"},
		{true, false, "\x00\x00\x00\x90\x0a\x05ADDED"},
	} {
		watch := kubeContent{verb: KubeWatch, proto: c.proto, failed: true}
		if err := watch.match([]byte(c.got), false); (err == nil) != c.fits {
			t.Errorf("%q (protobuf %v) of a response that has broken off: %v, want a match %v", c.got, c.proto, err, c.fits)
		}
		if err := watch.match([]byte(c.got), true); err == nil {
			t.Errorf("%q (protobuf %v) is taken for a whole response", c.got, c.proto)
		}
	}
}
