//go:build !amd64 || purego

package scan

func classify(p []byte, blocks []block) { classifyPortable(p, blocks) }
