// Package upstream picks one of a group's targets for each request, by balance,
// health and load. A target is a backend server; a group is a named set of
// targets with a transport, health checks and, optionally, a source of targets.
// The package does not forward requests, so any program that dials several
// servers can use it, not only package proxy.
package upstream
