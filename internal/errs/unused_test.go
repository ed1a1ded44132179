package errs_test

import (
	"errors"
	"testing"

	"github.com/culvert-go/culvert/internal/errs"
)

func TestEndedUnused(t *testing.T) {
	if errs.EndedUnused(nil) || errs.EndedUnused(errors.New("http2: client conn not usable")) || !errs.EndedUnused(errors.New("http2: client conn could not be established")) {
		t.Error("the error of an unused connection is not told from others")
	}
}
