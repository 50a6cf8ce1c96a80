package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-vram/vram/cudadrv"
)

// Key is all that an image depends on.
type Key struct {
	Source  string // the text, or all that it is made of
	Emitter string // the code that turned the source into the image, with its version
	Options string // for it
	Driver  string // with its version
	Compute cudadrv.ComputeCapability
}

const (
	// format is the first line of a file. Another format has another one, and with it other file names.
	format = "vram compiled kernel 1\n"
	// suffix ends the names of entries, temporary ends the names of files that are being written.
	suffix    = ".kernel"
	temporary = ".writing"
	nameBytes = 2*sha256.Size + len(suffix)
)

// header is the key as a file has it: no header begins another one.
func (k Key) header() []byte { return k.appendHeader(nil) }

func (k Key) appendHeader(b []byte) []byte {
	b = fmt.Appendf(b, "emitter %q\noptions %q\ndriver %q\ncompute %v\nsource %d\n",
		k.Emitter, k.Options, k.Driver, k.Compute, len(k.Source))
	return append(append(b, k.Source...), '\n')
}

// name is the file name of a header's entry.
func name(header []byte) string {
	h := sha256.New()
	h.Write([]byte(format)) // a hash returns no error
	h.Write(header)
	return hex.EncodeToString(h.Sum(nil)) + suffix
}

// isEntry reports whether a file name is one of name, in this format or another one.
func isEntry(file string) bool {
	if len(file) != nameBytes || file[nameBytes-len(suffix):] != suffix {
		return false
	}
	_, err := hex.DecodeString(file[:nameBytes-len(suffix)])
	return err == nil
}

// seal is the line before the contents.
func seal(contents []byte) []byte {
	return fmt.Appendf(nil, "%d %x\n", len(contents), sha256.Sum256(contents))
}

// encode is a file.
func encode(header, image []byte) []byte {
	contents := append(bytes.Clone(header), image...)
	return append(append([]byte(format), seal(contents)...), contents...)
}

// verdict is the result of a check of a file.
type verdict int

const (
	whole   verdict = iota
	foreign         // whole, and of another key
	damaged
)

// decode is the image of a file with a header.
func decode(file, header []byte) ([]byte, verdict) {
	rest, ok := bytes.CutPrefix(file, []byte(format))
	if !ok {
		return nil, damaged
	}
	end := bytes.IndexByte(rest, '\n') + 1
	line, contents := rest[:end], rest[end:]
	if !bytes.Equal(line, seal(contents)) {
		return nil, damaged
	}
	image, ok := bytes.CutPrefix(contents, header)
	if !ok {
		return nil, foreign
	}
	return image, whole
}
