package wsupgrade

import "syscall"

// This system has no call of their own for recvfrom and sendto.

func readNow(fd int, p []byte) (int, error) {
	n, err := syscall.Read(fd, p)
	return max(n, 0), err
}

func peekNow(fd int, p []byte) (int, error) {
	n, _, err := syscall.Recvfrom(fd, p, syscall.MSG_PEEK)
	return max(n, 0), err
}

func writeNow(fd int, p []byte) (int, error) {
	n, err := syscall.Write(fd, p)
	return max(n, 0), err
}
