//go:build race

package watchcodec_test

// factor is by how much the race detector multiplies memory.
const factor = 3
