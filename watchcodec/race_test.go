//go:build race

package watchcodec_test

// factor is how much more memory the race detector takes.
const factor = 3
