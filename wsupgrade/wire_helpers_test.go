package wsupgrade_test

import (
	"errors"
	"io"
	"log"
	"slices"
	"strings"

	"github.com/culvert-go/culvert/wsupgrade"
)

// quiet keeps aborted handlers out of the test's output.
var quiet = log.New(io.Discard, "", 0)

func asError(err error) *wsupgrade.Error {
	var e *wsupgrade.Error
	_ = errors.As(err, &e)
	return e
}

// headLines is head with its field lines sorted, names in lower case.
func headLines(head string) string {
	first, rest, _ := strings.Cut(head, "\r\n")
	lines := strings.Split(strings.TrimRight(rest, "\r\n"), "\r\n")
	for i, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		lines[i] = strings.ToLower(name) + ":" + value
	}
	slices.Sort(lines)
	return first + "\n" + strings.Join(lines, "\n")
}
