package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/culvert-go/culvert/filters/topology"
)

// views is a prometheus.Collector of the views that clients are served from.
type views struct{ filter *topology.Filter }

var (
	viewObjects = prometheus.NewDesc("edge_view_objects", "Objects that the API server has of what is filtered.", []string{"path", "labels", "fields"}, nil)
	viewBytes   = prometheus.NewDesc("edge_view_bytes", "Memory that they take.", []string{"path", "labels", "fields"}, nil)
	viewClients = prometheus.NewDesc("edge_view_clients", "Requests under way.", []string{"path", "labels", "fields"}, nil)
	viewSynced  = prometheus.NewDesc("edge_view_synced", "Views that clients are served from, one for each caller.", []string{"path", "labels", "fields"}, nil)
	viewStale   = prometheus.NewDesc("edge_view_stale_seconds", "How long the API server has been out of reach, at most.", []string{"path", "labels", "fields"}, nil)
)

// Describe sends the descriptions.
func (v views) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{viewObjects, viewBytes, viewClients, viewSynced, viewStale} {
		c <- d
	}
}

// Collect sends the current values. Views of several callers are combined, so that callers are
// not identified.
func (v views) Collect(c chan<- prometheus.Metric) {
	type key struct{ path, labels, fields string }
	sums := map[key][5]float64{}
	for _, s := range v.filter.Stats() {
		k := key{s.Path, s.LabelSelector, s.FieldSelector}
		sum := sums[k]
		sum[0] += float64(s.Objects)
		sum[1] += float64(s.Bytes)
		sum[2] += float64(s.Clients)
		if s.Synced {
			sum[3]++
		}
		sum[4] = max(sum[4], s.Stale.Seconds())
		sums[k] = sum
	}
	for k, sum := range sums {
		for i, d := range []*prometheus.Desc{viewObjects, viewBytes, viewClients, viewSynced, viewStale} {
			c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, sum[i], k.path, k.labels, k.fields)
		}
	}
}
