//go:build !race

package watchcodec_test

const factor = 1
