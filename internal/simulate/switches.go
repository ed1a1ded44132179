package simulate

import "strings"

// badSwitch returns a 101 of a target that is not a valid response to the upgrade, given the correct accept value.
type badSwitch struct {
	name string
	text func(accept string) string
}

// switching returns a 101 with the given lines; %s is the accept value.
func switching(lines ...string) func(string) string {
	return func(accept string) string {
		return strings.ReplaceAll("HTTP/1.1 101 Switching Protocols\r\n"+strings.Join(lines, "\r\n")+"\r\n\r\n", "%s", accept)
	}
}

const acceptLine = "Sec-WebSocket-Accept: %s"

// badSwitches lists 101s that a gateway must not pass on. New ones are added at the end.
var badSwitches = []badSwitch{
	{"no Upgrade", switching("Connection: Upgrade", acceptLine)},
	{"another protocol", switching("Upgrade: h2c", "Connection: Upgrade", acceptLine)},
	{"no Connection", switching("Upgrade: websocket", acceptLine)},
	{"a Connection without upgrade", switching("Upgrade: websocket", "Connection: close", acceptLine)},
	{"no Sec-WebSocket-Accept", switching("Upgrade: websocket", "Connection: Upgrade")},
	{"two of Sec-WebSocket-Accept", switching("Upgrade: websocket", "Connection: Upgrade", acceptLine, acceptLine)},
	{"a subprotocol that was not offered", switching("Upgrade: websocket", "Connection: Upgrade", acceptLine, "Sec-WebSocket-Protocol: other")},
	{"an extension that was not offered", switching("Upgrade: websocket", "Connection: Upgrade", acceptLine, "Sec-WebSocket-Extensions: permessage-deflate")},
	{"a broken field", switching("Upgrade: websocket", "Connection: Upgrade", acceptLine, "X-Sent")},
}
