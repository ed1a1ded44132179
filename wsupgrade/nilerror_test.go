package wsupgrade_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/culvert-go/culvert/internal/wiretest"
	"github.com/culvert-go/culvert/wsupgrade"
)

// An Observer's nil *CloseError, as a variable of that type may hold, is an error like any other.
func TestNilCloseError(t *testing.T) {
	var none *wsupgrade.CloseError
	for name, err := range map[string]error{"bare": none, "wrapped": fmt.Errorf("refused: %w", error(none))} {
		for method, observer := range map[string]wsupgrade.Observer{
			"Message": {Message: func(*wsupgrade.Message) error { return err }},
			"Frame":   {Frame: func(*wsupgrade.Frame) error { return err }},
		} {
			t.Run(method+", "+name, func(t *testing.T) {
				f := forwarder(t, observed(observer))
				target := wiretest.Target(t, func(p *wiretest.Peer) {
					respondToHandshake(p)
					wantClose(t, p.R, wsupgrade.PolicyViolation, "", true)
					p.Send(frame(closing, "\x03\xf0"))
					p.Ended()
				})
				client := open(t, wiretest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = f.Forward(w, r, outboundTo(r, target))
				})))
				client.Send(masked(text, "x"))
				wantClose(t, client.R, wsupgrade.PolicyViolation, "", false)
				client.Send(masked(closing, "\x03\xf0"))
				client.Ended()
			})
		}
	}
}
