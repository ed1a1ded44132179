//go:build !purego

package scan

var avx2 = hasAVX2()

// classify classifies the first len(blocks) blocks of p.
func classify(p []byte, blocks []block) {
	switch {
	case len(blocks) == 0:
	case avx2:
		_ = p[len(blocks)*blockSize-1]
		classifyAVX2(&p[0], len(blocks), &blocks[0])
	default:
		classifyPortable(p, blocks)
	}
}

//go:noescape
func classifyAVX2(p *byte, n int, blocks *block)

func hasAVX2() bool
