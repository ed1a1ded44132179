// Package simulate runs random histories of a whole gateway, clients and targets
// included, in memory and in virtual time, and checks rules that must hold in each of
// them. A history is a plan, made of a list of choices; everything that happens follows
// from the plan, so that a seed runs the same history again and a failing one can be
// shrunk.
//
//	go test ./internal/simulate -run TestHistories -args -seed 1 -histories 100000
//
// The world (network.go, half.go, conn.go) is a network with the manners of TCP. A plan
// (plan*.go) says what gateway there is (gateway.go), what its clients do
// (client*.go) and how its targets respond (target*.go). The parties write what they
// see into a journal; the rules (rules*.go) read it when the history has ended, and know
// nothing of how the gateway works.
package simulate
