package proxy

import (
	"net/http"
	"time"

	"github.com/culvert-go/culvert/internal/fault"
	"github.com/culvert-go/culvert/wsupgrade"
)

// upgradeExchange forwards an upgrade and blocks until its tunnel has ended.
type upgradeExchange struct{ upgrades *wsupgrade.Forwarder }

func (e upgradeExchange) exchange(w http.ResponseWriter, in, out *http.Request) (answerHead, *fault.Error) {
	start := time.Now()
	status, err := e.upgrades.Forward(w, in, out)
	return answerHead{status: status, after: time.Since(start)}, fault.As(err)
}
