// Package simulate runs random histories of a whole gateway, clients and targets
// included, in memory and in virtual time, and checks rules that must hold in each of
// them. A history is a plan, made of a list of choices, so that a seed runs the same
// history again and a failing one can be shrunk.
//
//	go test ./internal/simulate -run TestHistories -args -seed 1 -histories 100000
//
// The world (network.go, half.go, conn.go) is a network that behaves like TCP. A plan
// (plan*.go) says what gateway there is (gateway.go), what its clients do
// (client*.go) and how its targets respond (target*.go). The parties write what they
// see into a journal; the rules (rules*.go) read it when the history has ended, and know
// nothing of how the gateway works.
//
// # Where time stands still
//
// Time does not pass in a bubble while a goroutine waits for a mutex, so none may be held while its holder waits for a
// peer. The product's locks are internal/iolock. net/http's are not: its HTTP/2 client writes with a mutex held, so the
// direction that it writes to has no bound but the windows of HTTP/2 (world.go, endless), and a writer who waits for
// room there is met over real sockets alone. Its transport reads the end of a response with one held while the request
// is still being written, so such a body is closed when that is over (unheld.go). Its server sends a client a 100
// with one held, and closes idle connections with another one, so the shortest writes have room beyond each window
// (half.go, reserve). A history that
// stands still all the same, or that has no end, breaks a rule after a minute, and the run continues without it.
//
// # What repeats
//
// Everything that a party does follows from the plan, and so does what the gateway draws
// at random (internal/random). Each segment arrives at an instant of its own, and no
// party's pause ends at one of them (half.go, offGrid). One goroutine runs at a time
// (-threads 1). What remains is the runtime's choice where one instant lets several
// goroutines run: which case of a select is taken of those that are ready, which of two
// timers of one instant fires first (the bound of a body and that of its whole exchange,
// say), the order of a map, and where the scheduler interrupts a goroutine on a busy
// machine. Of 1,000 histories that ran twice, 10 differed in more than the order of lines
// of one instant, half of them in the text of an error alone; -twice counts them:
//
//	go test ./internal/simulate -run TestHistories -v -args -seed 500000 -histories 1000 -keep -twice
//
// A broken rule that a seed does not show again may need several runs of it, or -threads 2.
package simulate
