package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// result is one peer in all rounds.
type result struct {
	peer   peer
	rounds []measurement
}

// printTable prints the medians, and those of the ratios to the tuned
// ReverseProxy in the same round.
func printTable(w io.Writer, results []result) error {
	var tuned []measurement
	for _, r := range results {
		if r.peer.name == tunedName {
			tuned = r.rounds
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "peer\treq/s\tCPU µs/req\treq/s : tuned\tCPU : tuned\t\n")
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%.0f\t%.1f\t%.2f\t%.2f\t\n", r.peer.name,
			median(r.rounds, func(i int) float64 { return r.rounds[i].perSecond }),
			median(r.rounds, func(i int) float64 { return r.rounds[i].cpu }),
			median(r.rounds, func(i int) float64 { return r.rounds[i].perSecond / tuned[i].perSecond }),
			median(r.rounds, func(i int) float64 { return r.rounds[i].cpu / tuned[i].cpu }))
	}
	return t.Flush()
}

func median(rounds []measurement, of func(i int) float64) float64 {
	values := make([]float64, len(rounds))
	for i := range rounds {
		values[i] = of(i)
	}
	slices.Sort(values)
	n := len(values)
	if n == 0 {
		return 0
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}
