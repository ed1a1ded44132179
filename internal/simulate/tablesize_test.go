package simulate

import (
	"strings"
	"testing"
	"time"
)

// A gateway may use the header compression's first table until it has accepted the settings of a target (RFC 9113 section 6.5.3).
func TestTableBeforeTheSettings(t *testing.T) {
	for _, table := range []uint32{0, 4096, 65536} {
		plan := simplest()
		plan.Gateway.H2Targets, plan.Gateway.Transport = true, true
		plan.Targets[0].ByFrames, plan.Targets[0].Frames = true, FramesPlan{Window: 65535, Step: 65535, Table: table}
		plan.Targets[0].Links.Manners.Delay = 10 * time.Millisecond
		first := plan.Clients[0]
		for token := uint32(2); token < 5; token++ {
			c := first
			c.Requests = []ExchangePlan{first.Requests[0]}
			c.Requests[0].Token, c.Requests[0].Wait = token, time.Duration(token-1)*time.Millisecond
			plan.Clients = append(plan.Clients, c)
		}
		j := unbroken(t, plan)
		for token := uint32(1); token < 5; token++ {
			if o := j.outcomes[token]; o.Status != 200 || !o.Whole {
				t.Errorf("a table of %d bytes: #%d saw %d, whole %v, want 200", table, token, o.Status, o.Whole)
			}
		}
		if strings.Contains(j.Timeline(), "COMPRESSION_ERROR") {
			t.Errorf("a table of %d bytes: %s", table, j.Timeline())
		}
	}
}
