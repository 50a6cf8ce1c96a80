package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"unicode/utf8"
)

// alignment is the least alignment of the data in the file: the header ends with spaces for it, as the format's own
// library writes it, so that a mapped file can be read in place.
const alignment = 8

// Source is a tensor to be written.
type Source struct {
	Name  string
	Type  Type
	Shape []int64   // length of each dimension; none: a scalar
	Data  io.Reader // its bytes; Write reads as many as the shape has, and an earlier end is a *LengthError
}

// Write writes a file of tensors, in their order. The same input gives the same bytes. Errors: *FormatError for names
// and shapes that a file cannot have, before the first byte is written, *LengthError, and errors of writer and readers.
func Write(w io.Writer, metadata map[string]string, tensors []Source) error {
	if w == nil {
		return refuse("there is no writer")
	}
	text, sizes, err := formatHeader(metadata, tensors)
	if err != nil {
		return err
	}
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	if _, err := w.Write(append(length, text...)); err != nil {
		return err
	}
	for i, s := range tensors {
		if sizes[i] == 0 {
			continue
		}
		n, err := io.CopyN(w, s.Data, sizes[i])
		if errors.Is(err, io.EOF) {
			return &LengthError{Tensor: s.Name, Bytes: sizes[i], Given: n}
		}
		if err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", s.Name, err)
		}
	}
	return nil
}

// formatHeader returns the header's text, padded, and the size of each tensor.
func formatHeader(metadata map[string]string, tensors []Source) (text []byte, sizes []int64, err error) {
	text = []byte{'{'}
	add := func(key string, value any) error {
		if len(text) > 1 {
			text = append(text, ',')
		}
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		text = append(append(append(text, k...), ':'), v...)
		return err
	}
	for key, value := range metadata {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, nil, refuse("%s: %q is not UTF-8", metadataKey, key)
		}
	}
	if len(metadata) > 0 {
		if err := add(metadataKey, metadata); err != nil {
			return nil, nil, err
		}
	}
	seen := map[string]bool{metadataKey: true}
	var at int64
	for _, s := range tensors {
		size, reason := sizeOf(s.Type, s.Shape)
		switch {
		case reason != "":
		case seen[s.Name]:
			reason = "the name is taken"
		case !utf8.ValidString(s.Name):
			reason = "the name is not UTF-8"
		case at+size < at:
			reason = "the size of all tensors overflows"
		case s.Data == nil && size > 0:
			reason = "it has no Data"
		}
		if reason != "" {
			return nil, nil, &FormatError{Tensor: s.Name, Reason: reason}
		}
		seen[s.Name] = true
		shape, name := append(numbers{}, s.Shape...), s.Type.String() // never null
		if err := add(s.Name, described{Type: &name, Shape: &shape, Ranges: &numbers{at, at + size}}); err != nil {
			return nil, nil, err
		}
		sizes = append(sizes, size)
		at += size
	}
	text = append(text, '}')
	for (lengthBytes+len(text))%alignment != 0 {
		text = append(text, ' ')
	}
	if len(text) > MaxHeaderBytes {
		return nil, nil, refuse("the header of %d bytes is longer than %d", len(text), MaxHeaderBytes)
	}
	return text, sizes, nil
}

// WriteFile writes a file of tensors at a path. The path has the old file, or none, until the new one is on the disk as
// a whole: a process that is killed in between, or a machine that stops, loses nothing, and leaves path+".tmp", which the next
// WriteFile replaces. Two may not write one path at a time.
func WriteFile(path string, metadata map[string]string, tensors []Source) error {
	return disk{(*os.File).Sync, os.Rename}.write(path, metadata, tensors)
}

// disk has the calls that bring a file, or the new name in a folder, to the disk, and that replace a file.
type disk struct {
	sync   func(f *os.File) error
	rename func(from, to string) error
}

// write is WriteFile.
func (d disk) write(path string, metadata map[string]string, tensors []Source) error {
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666) //nolint:gosec // as os.Create has it
	if err != nil {
		return err
	}
	err = errors.Join(Write(f, metadata, tensors), d.sync(f), f.Close())
	if err == nil {
		err = d.rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return d.syncFolder(filepath.Dir(path))
}

// syncFolder makes a new name in a folder durable. Windows cannot, and needs it not.
func (d disk) syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	folder, err := os.Open(path) //nolint:gosec // the folder of the caller's path
	if err != nil {
		return err
	}
	return errors.Join(d.sync(folder), folder.Close())
}
