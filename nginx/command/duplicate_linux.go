package command

import "syscall"

// duplicate makes the descriptor to another name of from. Linux on arm64 has no dup2.
func duplicate(from, to int) error { return syscall.Dup3(from, to, 0) }
