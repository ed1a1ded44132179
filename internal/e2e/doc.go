// Package e2e holds culvert against real peers: Debian's nginx with the same
// configuration and the same requests, Chromium in front of the demonstration and of a
// terminal, WebSocket libraries of others, kubectl and client-go in front of Kubernetes'
// streaming code and of a real kube-apiserver (module kube, which takes minutes to build
// the first time). It has only tests. What it needs is kept out of the library's builds:
// run it with GOWORK=off.
package e2e
