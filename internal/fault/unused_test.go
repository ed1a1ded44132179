package fault_test

import (
	"errors"
	"testing"

	"github.com/culvert-go/culvert/internal/fault"
)

func TestEndedUnused(t *testing.T) {
	if fault.EndedUnused(nil) || fault.EndedUnused(errors.New("http2: client conn not usable")) || !fault.EndedUnused(errors.New("http2: client conn could not be established")) {
		t.Error("the error of an unused connection is not told from others")
	}
}
