package store

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// files are the operations on a folder. Tests have others that fail.
type files interface {
	// read is a regular file, and the time of its last change.
	read(path string) ([]byte, time.Time, error)
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

// disk is that of the operating system.
type disk struct{}

// errIrregular is a folder, or a device, in the place of an entry.
var errIrregular = errors.New("not a regular file")

func (disk) read(path string) ([]byte, time.Time, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, time.Time{}, &fs.PathError{Op: "read", Path: path, Err: errIrregular}
	}
	data, err := os.ReadFile(path)
	return data, info.ModTime(), err
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
