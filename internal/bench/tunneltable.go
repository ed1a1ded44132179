package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// tunnelResult is one peer in all rounds.
type tunnelResult struct {
	peer   peer
	rounds []tunnelMeasurement
}

// printTunnels prints the medians, and those of the ratios of processor time and p99 to
// ReverseProxy and to nginx in the same round.
func printTunnels(w io.Writer, results []tunnelResult) error {
	roundsOf := func(name string) []tunnelMeasurement {
		for _, r := range results {
			if r.peer.name == name {
				return r.rounds
			}
		}
		return nil
	}
	columns := []struct {
		name, format string
		of           func(tunnelMeasurement) float64
	}{
		{"KiB/idle", "%.1f", func(m tunnelMeasurement) float64 { return m.rss }},
		{"idle", "%.1f", func(m tunnelMeasurement) float64 { return m.rest }},
		{"fds/idle", "%.1f", func(m tunnelMeasurement) float64 { return m.files }},
		{"µs/handshake", "%.1f", func(m tunnelMeasurement) float64 { return m.handshake }},
		{"µs/128 B", "%.1f", func(m tunnelMeasurement) float64 { return m.small }},
		{"µs/64 KiB", "%.1f", func(m tunnelMeasurement) float64 { return m.large }},
		{"p99 µs", "%.0f", func(m tunnelMeasurement) float64 { return m.p99 }},
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "peer\t")
	for _, c := range columns {
		fmt.Fprintf(t, "%s\t", c.name)
	}
	for _, base := range []string{"ReverseProxy", "nginx"} {
		fmt.Fprintf(t, "handshake, 128 B, 64 KiB, p99 : %s\t", base)
	}
	fmt.Fprintln(t)
	for _, r := range results {
		fmt.Fprintf(t, "%s\t", r.peer.name)
		for _, c := range columns {
			fmt.Fprintf(t, c.format+"\t", medianOf(len(r.rounds), func(i int) float64 { return c.of(r.rounds[i]) }))
		}
		for _, base := range [][]tunnelMeasurement{roundsOf("ReverseProxy"), roundsOf("nginx")} {
			if base == nil {
				fmt.Fprint(t, "-\t")
				continue
			}
			for i, c := range columns[3:] {
				fmt.Fprintf(t, "%s%.2f", []string{"", ", "}[min(i, 1)], medianOf(len(r.rounds), func(i int) float64 { return c.of(r.rounds[i]) / c.of(base[i]) }))
			}
			fmt.Fprint(t, "\t")
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func medianOf(n int, of func(i int) float64) float64 {
	values := make([]float64, n)
	for i := range n {
		values[i] = of(i)
	}
	slices.Sort(values)
	if n == 0 {
		return 0
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}
