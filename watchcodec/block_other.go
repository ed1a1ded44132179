//go:build !amd64 || purego

package watchcodec

func classify(p []byte, blocks []block) { classifyPortable(p, blocks) }
