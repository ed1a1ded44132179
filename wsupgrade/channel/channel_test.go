package channel_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/wsupgrade/channel"
)

// The bytes are those that kubectl, the Kubernetes dashboard's libraries and the
// apiserver exchange.
func TestMessages(t *testing.T) {
	for _, test := range []struct {
		protocol channel.Protocol
		message  channel.Message
		want     string
	}{
		{channel.Binary, channel.Message{Channel: channel.Stdin, Data: []byte("ls\r")}, "\x00ls\r"},
		{channel.V4, channel.Message{Channel: channel.Stdout}, "\x01"},
		{channel.V4, channel.Size{Width: 80, Height: 20}.Message(), "\x04{\"Width\":80,\"Height\":20}"},
		{channel.V4Base64, channel.Size{Width: 80, Height: 20}.Message(), "4eyJXaWR0aCI6ODAsIkhlaWdodCI6MjB9"},
		{channel.Base64, channel.Message{Channel: channel.Stderr, Data: []byte("\xff\x00")}, "2/wA="},
		{channel.Base64, channel.Message{Channel: channel.Error}, "3"},
		{channel.V5, channel.Message{Channel: channel.Stdin, Closed: true}, "\xff\x00"},
		{channel.V5, channel.Message{Channel: channel.Error, Data: []byte(`{"status":"Success"}`)}, "\x03{\"status\":\"Success\"}"},
	} {
		got, err := test.protocol.Append([]byte("before "), test.message)
		if err != nil || string(got) != "before "+test.want {
			t.Errorf("%s %+v: %q, want %q: %v", test.protocol, test.message, got, test.want, err)
		}
		back, err := test.protocol.Decode(test.protocol.Text(), []byte(test.want))
		if err != nil || back.Channel != test.message.Channel || !bytes.Equal(back.Data, test.message.Data) || back.Closed != test.message.Closed {
			t.Errorf("%s %q: %+v, want %+v: %v", test.protocol, test.want, back, test.message, err)
		}
	}
}

func TestWhatCannotBeSaid(t *testing.T) {
	for want, say := range map[string]func() error{
		`channel: unknown protocol "v9"`:                                      func() error { _, err := channel.Protocol("v9").Append(nil, channel.Message{}); return err },
		"channel: v4.channel.k8s.io can't close one channel":                  func() error { _, err := channel.V4.Append(nil, channel.Message{Closed: true}); return err },
		"channel: 255 is the close signal":                                    func() error { _, err := channel.V5.Append(nil, channel.Message{Channel: 255}); return err },
		"channel: 10 is no digit":                                             func() error { _, err := channel.V4Base64.Append(nil, channel.Message{Channel: 10}); return err },
		"channel: an empty message has no channel":                            func() error { _, err := channel.V4.Decode(false, nil); return err },
		"channel: a close signal names one channel":                           func() error { _, err := channel.V5.Decode(false, []byte{255}); return err },
		`channel: 'x' is no digit of a channel`:                               func() error { _, err := channel.Base64.Decode(true, []byte("x")); return err },
		"channel: base64.channel.k8s.io: illegal base64 data at input byte 0": func() error { _, err := channel.Base64.Decode(true, []byte("0?")); return err },
	} {
		if err := say(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, p := range []channel.Protocol{channel.V4, channel.V4Base64} {
		if _, err := p.Decode(!p.Text(), []byte("0")); err == nil {
			t.Errorf("%s takes the other kind of message", p)
		}
	}
}

// Check names what a server would ignore silently; "" is for a message that it accepts.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		protocol channel.Protocol
		text     bool
		message  string
		want     string
	}{
		{channel.V4, false, "\x04{\"Width\":80,\"Height\":20}", ""},
		{channel.V4Base64, true, "4eyJXaWR0aCI6ODAsIkhlaWdodCI6MjB9", ""},
		{channel.V4, false, "\x00ls", ""},
		{channel.V5, false, "\xff\x00", ""},
		{channel.V4, false, `4{"Width":80,"Height":20}`, "the channel is the digit '4', and v4.channel.k8s.io wants the byte 4"},
		{channel.V4, true, `4{"Width":80,"Height":20}`, "the channel is the digit '4', and v4.channel.k8s.io wants the byte 4"},
		{channel.V4Base64, true, `4{"Width":80,"Height":20}`, "the size is not in base64, as v4.base64.channel.k8s.io wants it"},
		{channel.V4, true, "\x00ls", "v4.channel.k8s.io wants binary messages"},
		{channel.V4Base64, false, "0bHM=", "v4.base64.channel.k8s.io wants text messages"},
		{channel.V4, false, "\x04{\"Width\":99999}", "channel: size: json: cannot unmarshal number 99999 into Go struct field Size.Width of type uint16"},
		{channel.V4, false, "\x01x", "channel: a client does not send on channel 1"},
	} {
		err := test.protocol.Check(test.text, []byte(test.message))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %q: %v, want %q", test.protocol, test.message, err, test.want)
		}
	}
}

// FuzzTranslate: a message translated to another protocol and back is the same.
func FuzzTranslate(f *testing.F) {
	f.Add(byte(4), []byte(`{"Width":80,"Height":20}`))
	f.Add(byte(0), []byte{})
	f.Fuzz(func(t *testing.T, number byte, data []byte) {
		encoded, err := channel.V4.Append(nil, channel.Message{Channel: number, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		there, text, err := channel.Translate(channel.V4, channel.V4Base64, false, encoded)
		if number > 9 {
			if err == nil {
				t.Fatalf("channel %d has a digit", number)
			}
			return
		}
		if err != nil || !text {
			t.Fatal(text, err)
		}
		back, text, err := channel.Translate(channel.V4Base64, channel.V4, text, there)
		if err != nil || text || !bytes.Equal(back, encoded) {
			t.Fatalf("%q became %q, then %q: %v", encoded, there, back, err)
		}
	})
}
