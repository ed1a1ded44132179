package simulate

import (
	"fmt"
	"strings"
)

// otherProtocol is the protocol of upgrades that are not to websocket. Their requests have a body, as those of "docker exec".
const otherProtocol = "tcp"

// posted returns the body of the upgrade.
func (t *TunnelPlan) posted() string { return strings.Repeat("{", t.Posted) }

// upgradeHeader returns the header section of an upgrade, without its end.
func upgradeHeader(e *ExchangePlan) string {
	line := e.Method + " " + e.target() + " HTTP/1.1\r\nHost: gateway.test\r\nConnection: Upgrade\r\n"
	if n := e.Tunnel.Posted; n > 0 {
		return line + fmt.Sprintf("Upgrade: %s\r\nContent-Length: %d\r\n", otherProtocol, n)
	}
	return line + "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + wsKey + "\r\n"
}
