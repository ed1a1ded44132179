package vars

import "strconv"

// Connections are counts of open connections, in total and by state.
type Connections struct{ Active, Reading, Writing, Waiting int }

// statusVariables are stub_status's.
var statusVariables = map[string]Getter{
	"connections_active":  connections(func(c Connections) int { return c.Active }),
	"connections_reading": connections(func(c Connections) int { return c.Reading }),
	"connections_waiting": connections(func(c Connections) int { return c.Waiting }),
	"connections_writing": connections(func(c Connections) int { return c.Writing }),
}

func connections(which func(Connections) int) Getter {
	return func(r *Request) (string, bool) {
		if r.Location == nil {
			return "", false
		}
		return strconv.Itoa(which(r.Location.Connections())), true
	}
}
