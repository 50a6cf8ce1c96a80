package main

import (
	"os"
	"syscall"
)

// socketPair makes two connected sockets, which no other program inherits.
func socketPair() (a, b *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "first end"), os.NewFile(uintptr(fds[1]), "second end"), nil //nolint:gosec // descriptors are not negative
}
