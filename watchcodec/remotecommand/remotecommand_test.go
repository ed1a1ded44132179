package remotecommand_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/culvert-go/culvert/watchcodec/remotecommand"
)

// The bytes are those that kubectl, the Kubernetes dashboard's libraries and the
// apiserver exchange.
func TestMessages(t *testing.T) {
	for _, test := range []struct {
		protocol remotecommand.Protocol
		message  remotecommand.Message
		want     string
	}{
		{remotecommand.Binary, remotecommand.Message{Channel: remotecommand.Stdin, Data: []byte("ls\r")}, "\x00ls\r"},
		{remotecommand.V4, remotecommand.Message{Channel: remotecommand.Stdout}, "\x01"},
		{remotecommand.V4, remotecommand.Size{Width: 80, Height: 20}.Message(), "\x04{\"Width\":80,\"Height\":20}"},
		{remotecommand.V4Base64, remotecommand.Size{Width: 80, Height: 20}.Message(), "4eyJXaWR0aCI6ODAsIkhlaWdodCI6MjB9"},
		{remotecommand.Base64, remotecommand.Message{Channel: remotecommand.Stderr, Data: []byte("\xff\x00")}, "2/wA="},
		{remotecommand.Base64, remotecommand.Message{Channel: remotecommand.Error}, "3"},
		{remotecommand.V5, remotecommand.Message{Channel: remotecommand.Stdin, Closed: true}, "\xff\x00"},
		{remotecommand.V5, remotecommand.Message{Channel: remotecommand.Error, Data: []byte(`{"status":"Success"}`)}, "\x03{\"status\":\"Success\"}"},
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
		`remotecommand: unknown protocol "v9"`:                     func() error { _, err := remotecommand.Protocol("v9").Append(nil, remotecommand.Message{}); return err },
		"remotecommand: v4.channel.k8s.io can't close one channel": func() error { _, err := remotecommand.V4.Append(nil, remotecommand.Message{Closed: true}); return err },
		"remotecommand: 255 is the close signal":                   func() error { _, err := remotecommand.V5.Append(nil, remotecommand.Message{Channel: 255}); return err },
		"remotecommand: 10 is no digit": func() error {
			_, err := remotecommand.V4Base64.Append(nil, remotecommand.Message{Channel: 10})
			return err
		},
		"remotecommand: an empty message has no channel":                            func() error { _, err := remotecommand.V4.Decode(false, nil); return err },
		"remotecommand: a close signal names one channel":                           func() error { _, err := remotecommand.V5.Decode(false, []byte{255}); return err },
		`remotecommand: 'x' is no digit of a channel`:                               func() error { _, err := remotecommand.Base64.Decode(true, []byte("x")); return err },
		"remotecommand: base64.channel.k8s.io: illegal base64 data at input byte 0": func() error { _, err := remotecommand.Base64.Decode(true, []byte("0?")); return err },
	} {
		if err := say(); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, p := range []remotecommand.Protocol{remotecommand.V4, remotecommand.V4Base64} {
		if _, err := p.Decode(!p.Text(), []byte("0")); err == nil {
			t.Errorf("%s takes the other kind of message", p)
		}
	}
}

// Check names what a server would ignore silently; "" is for a message that it accepts.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		protocol remotecommand.Protocol
		text     bool
		message  string
		want     string
	}{
		{remotecommand.V4, false, "\x04{\"Width\":80,\"Height\":20}", ""},
		{remotecommand.V4Base64, true, "4eyJXaWR0aCI6ODAsIkhlaWdodCI6MjB9", ""},
		{remotecommand.V4, false, "\x00ls", ""},
		{remotecommand.V5, false, "\xff\x00", ""},
		{remotecommand.V4, false, `4{"Width":80,"Height":20}`, "the channel is the digit '4', and v4.channel.k8s.io wants the byte 4"},
		{remotecommand.V4, true, `4{"Width":80,"Height":20}`, "the channel is the digit '4', and v4.channel.k8s.io wants the byte 4"},
		{remotecommand.V4Base64, true, `4{"Width":80,"Height":20}`, "the size is not in base64, as v4.base64.channel.k8s.io wants it"},
		{remotecommand.V4, true, "\x00ls", "v4.channel.k8s.io wants binary messages"},
		{remotecommand.V4Base64, false, "0bHM=", "v4.base64.channel.k8s.io wants text messages"},
		{remotecommand.V4, false, "\x04{\"Width\":99999}", "remotecommand: size: json: cannot unmarshal number 99999 into Go struct field Size.Width of type uint16"},
		{remotecommand.V4, false, "\x01x", "remotecommand: a client does not send on channel 1"},
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
		encoded, err := remotecommand.V4.Append(nil, remotecommand.Message{Channel: number, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		there, text, err := remotecommand.Translate(remotecommand.V4, remotecommand.V4Base64, false, encoded)
		if number > 9 {
			if err == nil {
				t.Fatalf("channel %d has a digit", number)
			}
			return
		}
		if err != nil || !text {
			t.Fatal(text, err)
		}
		back, text, err := remotecommand.Translate(remotecommand.V4Base64, remotecommand.V4, text, there)
		if err != nil || text || !bytes.Equal(back, encoded) {
			t.Fatalf("%q became %q, then %q: %v", encoded, there, back, err)
		}
	})
}
