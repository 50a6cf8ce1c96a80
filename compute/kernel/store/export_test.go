package store

import (
	"io/fs"
	"time"
)

// Files are the operations on a folder, which tests replace.
type Files = files

// OpenOn is Open on other operations.
func OpenOn(with Config, on Files) *Store { return openOn(with, on) }

// Faulty are operations of which some fail.
type Faulty struct {
	disk

	Fail func(operation string) error // nil: none
}

func (f *Faulty) fails(operation string) error {
	if f.Fail == nil {
		return nil
	}
	return f.Fail(operation)
}

func (f *Faulty) folder(path string) error {
	if err := f.fails("folder"); err != nil {
		return err
	}
	return f.disk.folder(path)
}

func (f *Faulty) trust(folder string) error {
	if err := f.fails("trust"); err != nil {
		return err
	}
	return f.disk.trust(folder)
}

func (f *Faulty) read(to []byte, path string, limitBytes int64) ([]byte, time.Time, error) {
	if err := f.fails("read"); err != nil {
		return to, time.Time{}, err
	}
	return f.disk.read(to, path, limitBytes)
}

func (f *Faulty) touch(path string) error {
	if err := f.fails("touch"); err != nil {
		return err
	}
	return f.disk.touch(path)
}

func (f *Faulty) remove(path string) error {
	if err := f.fails("remove"); err != nil {
		return err
	}
	return f.disk.remove(path)
}

func (f *Faulty) list(folder string) ([]fs.FileInfo, error) {
	if err := f.fails("list"); err != nil {
		return nil, err
	}
	return f.disk.list(folder)
}

func (f *Faulty) rename(from, to string) error {
	if err := f.fails("rename"); err != nil {
		return err
	}
	return f.disk.rename(from, to)
}

func (f *Faulty) create(folder string) (file, error) {
	if err := f.fails("create"); err != nil {
		return nil, err
	}
	made, err := f.disk.create(folder)
	if err != nil {
		return nil, err
	}
	return &faultyFile{made, f}, nil
}

type faultyFile struct {
	file

	of *Faulty
}

// Write writes half of the data where it fails.
func (f *faultyFile) Write(data []byte) (int, error) {
	if err := f.of.fails("write"); err != nil {
		n, _ := f.file.Write(data[:len(data)/2])
		return n, err
	}
	return f.file.Write(data)
}

// Close closes the file also where it fails.
func (f *faultyFile) Close() error {
	err := f.file.Close()
	if failed := f.of.fails("close"); failed != nil {
		return failed
	}
	return err
}

// Encode is a file for a key.
func Encode(k Key, image []byte) []byte { return encode(k.header(), image) }

// Decode is the image of a file for a key, if it is whole.
func Decode(file []byte, k Key) ([]byte, bool) {
	image, v := decode(file, k.header())
	return image, v == whole
}

// Name is the file name of a key.
func Name(k Key) string { return name(k.header()) }
