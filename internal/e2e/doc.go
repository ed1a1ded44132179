// Package e2e holds culvert against real peers: Debian's nginx with the same
// configuration and the same requests, and Chromium in front of the
// demonstration. It has only tests. What it needs stays out of the library's
// builds: run it with GOWORK=off.
package e2e
