package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// files are the operations on a folder. Tests have others that fail.
type files interface {
	// read adds a regular file of so many bytes at most to a buffer, and has the time of its last change.
	read(to []byte, path string, limitBytes int64) ([]byte, time.Time, error)
	// trust refuses a folder that other users may write to.
	trust(folder string) error
	touch(path string) error
	remove(path string) error
	rename(from, to string) error
	// folder makes a folder that is not there.
	folder(path string) error
	// list are the regular files of a folder.
	list(folder string) ([]fs.FileInfo, error)
	// create makes a file with a name of its own.
	create(folder string) (file, error)
}

// file is one that is being written.
type file interface {
	Name() string
	Write(data []byte) (int, error)
	Close() error
}

// disk is the operating system's.
type disk struct{}

// errIrregular is a folder, a device, or a file longer than any entry, where an entry should be.
var errIrregular = errors.New("not a regular file of an entry's length")

func (disk) read(to []byte, path string, limitBytes int64) (data []byte, changed time.Time, err error) {
	info, err := os.Stat(path) // before it is opened: opening a pipe waits for a writer
	if err != nil {
		return to, time.Time{}, err
	}
	if !info.Mode().IsRegular() {
		return to, time.Time{}, &fs.PathError{Op: "read", Path: path, Err: errIrregular}
	}
	f, err := os.Open(path)
	if err != nil {
		return to, time.Time{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err = f.Stat(); err != nil { // another process may have replaced the file
		return to, time.Time{}, err
	}
	if info.Size() > limitBytes { // its length is from outside: nothing is allocated by it
		return to, time.Time{}, &fs.PathError{Op: "read", Path: path, Err: errIrregular}
	}
	size := int(info.Size())
	data = slices.Grow(to, size)[:len(to)+size]
	n, err := io.ReadFull(f, data[len(to):])
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return data[:len(to)+n], info.ModTime(), err
}

func (disk) touch(path string) error { return os.Chtimes(path, time.Time{}, time.Now()) }

func (disk) remove(path string) error { return os.Remove(path) }

func (disk) rename(from, to string) error { return os.Rename(from, to) }

func (disk) folder(path string) error { return os.MkdirAll(path, 0o700) }

func (disk) list(folder string) ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []fs.FileInfo
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process removed it
		}
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

func (disk) create(folder string) (file, error) {
	f, err := os.CreateTemp(folder, "*"+temporary)
	if err != nil {
		return nil, err // not f, which is a nil pointer
	}
	return f, nil
}
