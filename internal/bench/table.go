package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// result is one peer in all rounds.
type result struct {
	peer   peer
	rounds []measurement
}

// printTable prints the medians, and those of the ratios to the tuned
// ReverseProxy in the same round, or to the first peer where that does not run.
func printTable(w io.Writer, results []result) error {
	tuned := results[0].rounds
	for _, r := range results {
		if r.peer.name == tunedName {
			tuned = r.rounds
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "peer\treq/s\tCPU µs/req\tallocs/req\tp50 µs\tp99 µs\treq/s : tuned\tCPU : tuned\tp99 : tuned\t\n")
	for _, r := range results {
		of := func(f func(m measurement) float64) float64 {
			return median(r.rounds, func(i int) float64 { return f(r.rounds[i]) })
		}
		ratio := func(f func(m measurement) float64) float64 {
			return median(r.rounds, func(i int) float64 { return f(r.rounds[i]) / f(tuned[i]) })
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.1f\t%s\t%.0f\t%.0f\t%.2f\t%.2f\t%.2f\t\n", r.peer.name,
			of(perSecond), of(cpu), number(of(allocs)), of(p50), of(p99), ratio(perSecond), ratio(cpu), ratio(p99))
	}
	return t.Flush()
}

func median(rounds []measurement, of func(i int) float64) float64 {
	return medianOf(len(rounds), of)
}

func perSecond(m measurement) float64 { return m.perSecond }
func cpu(m measurement) float64       { return m.cpu }
func allocs(m measurement) float64    { return m.allocs }
func p50(m measurement) float64       { return m.p50 }
func p99(m measurement) float64       { return m.p99 }
func memory(m measurement) float64    { return m.memory }

// number returns a count, or a dash if it is not known.
func number(n float64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}
