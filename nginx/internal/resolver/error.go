package resolver

import "strconv"

// Codes of an Error: those of name servers (RFC 1035 section 4.1.1), and ETIMEDOUT.
const (
	FormatError    = 1
	ServerFailure  = 2
	NotFound       = 3 // no such name, or none of the records
	NotImplemented = 4
	Refused        = 5
	TimedOut       = 110
)

// Error is why a name could not be looked up.
type Error struct {
	Code int
}

// Error returns the code and its text, in nginx's words.
func (e *Error) Error() string { return strconv.Itoa(e.Code) + ": " + codeText(e.Code) }

func codeText(code int) string {
	switch code {
	case FormatError:
		return "Format error"
	case ServerFailure:
		return "Server failure"
	case NotFound:
		return "Host not found"
	case NotImplemented:
		return "Unimplemented"
	case Refused:
		return "Operation refused"
	case TimedOut:
		return "Operation timed out"
	}
	return "Unknown error"
}
