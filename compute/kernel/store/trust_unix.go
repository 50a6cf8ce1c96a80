//go:build unix

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// errUntrusted is the reason for which a folder is not used.
var errUntrusted = errors.New("other users may choose the code that runs on the GPU")

// othersWrite are the bits of a mode with which others than the owner may write.
const othersWrite = 0o022

func (disk) trust(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&othersWrite != 0 {
		return &fs.PathError{Op: "trust", Path: folder, Err: fmt.Errorf("its mode is %v: %w", mode, errUntrusted)}
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return &fs.PathError{Op: "trust", Path: folder, Err: fmt.Errorf("its owner is user %d: %w", stat.Uid, errUntrusted)}
	}
	return nil
}
