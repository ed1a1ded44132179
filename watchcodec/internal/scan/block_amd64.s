//go:build !purego

#include "textflag.h"

// BITS32 has for each of 32 bytes a bit of what it is.
#define BITS32(offset, quote, backslash, open, close, curly) \
	VMOVDQU offset(SI), Y0; \
	VPCMPEQB Y8, Y0, Y1; \
	VPMOVMSKB Y1, quote; \
	VPCMPEQB Y9, Y0, Y2; \
	VPMOVMSKB Y2, backslash; \
	VPSLLW $2, Y0, Y3; \
	VPMOVMSKB Y3, curly; \
	VPOR Y10, Y0, Y0; \
	VPCMPEQB Y11, Y0, Y4; \
	VPMOVMSKB Y4, open; \
	VPCMPEQB Y12, Y0, Y5; \
	VPMOVMSKB Y5, close

#define BROADCAST(constant, x, y) \
	MOVQ $constant, AX; \
	MOVQ AX, x; \
	VPBROADCASTQ x, y

// JOIN puts the bits of the upper 32 bytes above those of the lower, and stores them.
#define JOIN(upper, lower, offset) \
	SHLQ $32, upper; \
	ORQ upper, lower; \
	MOVQ lower, offset(DI)

// func classifyAVX2(p *byte, n int, blocks *block)
TEXT ·classifyAVX2(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ blocks+16(FP), DI
	BROADCAST(0x2222222222222222, X8, Y8)   // "
	BROADCAST(0x5c5c5c5c5c5c5c5c, X9, Y9)   // backslash
	BROADCAST(0x2020202020202020, X10, Y10) // makes square brackets curly
	BROADCAST(0x7b7b7b7b7b7b7b7b, X11, Y11) // {
	BROADCAST(0x7d7d7d7d7d7d7d7d, X12, Y12) // }

next:
	BITS32(0, R8, R9, R10, R11, R12)
	BITS32(32, AX, BX, DX, R13, R15)
	JOIN(AX, R8, 0)
	JOIN(BX, R9, 8)
	JOIN(DX, R10, 16)
	JOIN(R13, R11, 24)
	JOIN(R15, R12, 32)
	ADDQ $64, SI
	ADDQ $40, DI
	DECQ CX
	JNZ next
	VZEROUPPER
	RET

// func hasAVX2() bool
TEXT ·hasAVX2(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	CPUID
	CMPL AX, $7
	JLT no
	MOVL $1, AX
	XORL CX, CX
	CPUID
	ANDL $0x18000000, CX // OSXSAVE and AVX
	CMPL CX, $0x18000000
	JNE no
	XORL CX, CX
	XGETBV
	ANDL $6, AX // the system saves the registers
	CMPL AX, $6
	JNE no
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $5, BX
	ANDL $1, BX
	MOVB BX, ret+0(FP)
no:
	RET
