//go:build !unix

package command

import (
	"errors"
	"os"
)

// Other systems have only Ctrl-C.
var orders = map[os.Signal]order{
	os.Interrupt: {signal: "SIGINT", doing: "exiting", do: stop, last: true},
}

func cuts(s os.Signal) bool { return s == os.Interrupt }

func kill(int, string) error { return errors.ErrUnsupported }
