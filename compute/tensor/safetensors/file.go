package safetensors

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
)

// MaxHeaderBytes is the longest header that Open accepts and Write writes. The format's own library has the same limit.
const MaxHeaderBytes = 100_000_000

// lengthBytes is the size of the number before the header.
const lengthBytes = 8

// File is a file of tensors that was opened.
type File struct {
	reader   io.ReaderAt
	closer   io.Closer // nil: the reader is the caller's
	data     int64     // place of the data in the file
	metadata map[string]string
	entries  []Entry // in the order of their bytes
	byName   map[string]int
}

// OpenFile opens the file at a path. Close closes it.
func OpenFile(path string) (*File, error) {
	f, err := os.Open(path) //nolint:gosec // the path is the caller's
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file, err := Open(f, info.Size())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file.closer = f
	return file, nil
}

// Open reads and checks the header of a file with the given size in bytes. The reader stays the caller's, and must not
// be closed before the last use of the File. Errors: *FormatError, and errors of the reader.
func Open(r io.ReaderAt, size int64) (*File, error) {
	var length [lengthBytes]byte
	if r == nil {
		return nil, refuse("there is no reader")
	}
	if size < lengthBytes {
		return nil, refuse("%d bytes are too short for a file", size)
	}
	if err := readAt(r, length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > MaxHeaderBytes {
		return nil, refuse("its header of %d bytes is longer than %d", n, MaxHeaderBytes)
	}
	data := lengthBytes + int64(n) //nolint:gosec // at most MaxHeaderBytes
	if data > size {
		return nil, refuse("its header of %d bytes is longer than the file of %d", n, size)
	}
	text := make([]byte, n)
	if err := readAt(r, text, lengthBytes); err != nil {
		return nil, err
	}
	h, err := parseHeader(text)
	if err != nil {
		return nil, err
	}
	return newFile(r, h, data, size-data)
}

// newFile orders the entries of a header, and checks that their ranges are the data.
func newFile(r io.ReaderAt, h header, data, dataBytes int64) (*File, error) {
	f := &File{reader: r, data: data, metadata: h.metadata, entries: h.entries, byName: make(map[string]int, len(h.entries))}
	slices.SortFunc(f.entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.Name, b.Name))
	})
	var at int64
	for i, e := range f.entries {
		if e.begin != at {
			return nil, &FormatError{Tensor: e.Name, Reason: fmt.Sprintf("its range begins at %d, and the range before it ends at %d", e.begin, at)}
		}
		at = e.end
		f.byName[e.Name] = i
	}
	if at != dataBytes {
		return nil, refuse("its tensors have %d bytes, and the file has %d after the header", at, dataBytes)
	}
	return f, nil
}

// readAt fills p from the place.
func readAt(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("safetensors: %w", err)
}

// Close closes a file that OpenFile opened. For other files it does nothing.
func (f *File) Close() error {
	if f == nil || f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Metadata returns a copy of the texts of the header, never nil.
func (f *File) Metadata() map[string]string {
	if f == nil || f.metadata == nil {
		return map[string]string{}
	}
	return maps.Clone(f.metadata)
}

// Entries returns the tensors, in the order of their bytes.
func (f *File) Entries() []Entry {
	if f == nil {
		return nil
	}
	all := slices.Clone(f.entries)
	for i := range all {
		all[i].Shape = slices.Clone(all[i].Shape)
	}
	return all
}

// find returns the tensor of a name, or a *NotFoundError.
func (f *File) find(name string) (Entry, error) {
	if f != nil {
		if i, ok := f.byName[name]; ok {
			return f.entries[i], nil
		}
	}
	return Entry{}, &NotFoundError{Tensor: name}
}

// Entry returns the tensor of a name, or a *NotFoundError.
func (f *File) Entry(name string) (Entry, error) {
	e, err := f.find(name)
	e.Shape = slices.Clone(e.Shape)
	return e, err
}

// Reader returns a reader of the bytes of a tensor, or a *NotFoundError.
func (f *File) Reader(name string) (*io.SectionReader, error) {
	e, err := f.find(name)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f.reader, f.data+e.begin, e.Bytes()), nil
}

// ReadInto reads the bytes of a tensor into p, which must have its length. Errors: *NotFoundError, *LengthError, and
// errors of the reader.
func (f *File) ReadInto(p []byte, name string) error {
	e, err := f.find(name)
	switch {
	case err != nil:
		return err
	case int64(len(p)) != e.Bytes():
		return &LengthError{Tensor: name, Bytes: e.Bytes(), Given: int64(len(p))}
	case len(p) == 0:
		return nil
	}
	return readAt(f.reader, p, f.data+e.begin)
}
