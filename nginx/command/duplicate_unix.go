//go:build unix && !linux

package command

import "syscall"

// duplicate makes the descriptor to another name of from.
func duplicate(from, to int) error { return syscall.Dup2(from, to) }
