package cuda

import (
	"bytes"
	"encoding/binary"
)

// The driver returns the offset and size of each parameter of a kernel, but not their number. Asking for one too many fails,
// and tools that check its calls, as NVIDIA's compute-sanitizer, report that as an error. So the number is read from the image,
// and the types, which the driver does not tell, from text in it.

// An imageReader collects the signatures of each kernel of an image. A kernel whose parts disagree about the number of
// parameters, or cannot be read, has none.
type imageReader struct {
	kernels map[string]signature
	unsure  []string
}

// signatures returns the signatures of an image's kernels by name, as far as they are certain.
func signatures(image []byte) map[string]signature {
	c := imageReader{kernels: map[string]signature{}}
	switch {
	case bytes.HasPrefix(image, []byte(elfMagic)):
		c.readCubin(image)
	case bytes.HasPrefix(image, []byte(fatMagic)):
		if !c.readFatBinary(image) {
			return nil
		}
	default:
		c.readText(image)
	}
	for _, kernel := range c.unsure {
		delete(c.kernels, kernel)
	}
	return c.kernels
}

// add records the signature in one part of the image.
func (c *imageReader) add(kernel string, s signature, sure bool) {
	if before, again := c.kernels[kernel]; again {
		var ok bool
		s, ok = before.merge(s)
		sure = sure && ok
	}
	if !sure {
		c.unsure = append(c.unsure, kernel)
		return
	}
	c.kernels[kernel] = s
}

// readText finds ".entry name ( .param ..., .param ... )" in PTX.
func (c *imageReader) readText(text []byte) {
	r := signatureReader{text}
	for {
		kernel, s, sure, found := r.next()
		if !found {
			return
		}
		c.add(kernel, s, sure)
	}
}

// A cubin is a 64-bit ELF file with a section of attributes for each kernel. An attribute has a header of 4 bytes: its form,
// its number, and a value or the size of the value that follows. Package debug/elf rejects cubins: their e_version is a number
// of the toolkit.
const (
	infoPrefix = ".nv.info." // followed by the kernel's name

	elfHeaderBytes, sectionHeaderBytes = 64, 64

	valueInHeader = 3 // EIFMT_HVAL
	valueFollows  = 4 // EIFMT_SVAL

	paramBytesAttribute = 0x19 // EIATTR_CBANK_PARAM_SIZE: total size of the parameters
	paramAttribute      = 0x17 // EIATTR_KPARAM_INFO: one for each parameter
)

// A fat binary is a header and parts. Each part has a header and an image: PTX or a cubin.
const (
	fatHeaderBytes = 16
	partBytes      = 64 // at least; newer toolkits append fields

	textPart, cubinPart = 1, 2

	compressedFlags = 0x1000 | 0x2000 | 0x8000 // a part compressed by one of the toolkits' methods
)

const (
	elfMagic = "\x7fELF"
	fatMagic = "\x50\xed\x55\xba"
)

// readFatBinary reads the parts of a fat binary that are not compressed. One readable part with a kernel is enough: CUDA
// requires the same parameters of a kernel for all architectures. It reports false for a malformed binary.
func (c *imageReader) readFatBinary(image []byte) bool {
	little := binary.LittleEndian
	if len(image) < fatHeaderBytes {
		return false
	}
	header, size := int(little.Uint16(image[6:])), little.Uint64(image[8:])
	if header < fatHeaderBytes || header > len(image) || size > uint64(len(image)-header) {
		return false
	}
	for rest := image[header:][:size]; len(rest) > 0; {
		if len(rest) < partBytes {
			return false
		}
		kind, header, size := little.Uint16(rest), uint64(little.Uint32(rest[4:])), little.Uint64(rest[8:])
		flags, unpackedBytes := little.Uint64(rest[40:]), little.Uint64(rest[56:])
		if header < partBytes || header > uint64(len(rest)) || size > uint64(len(rest))-header {
			return false
		}
		part := rest[header:][:size]
		rest = rest[header+size:]
		switch {
		case flags&compressedFlags != 0 || unpackedBytes != 0:
		case kind == textPart:
			c.readText(part)
		case kind == cubinPart && bytes.HasPrefix(part, []byte(elfMagic)):
			c.readCubin(part)
		}
	}
	return true
}

// readCubin reads the attributes of each kernel of a cubin. It skips sections outside the image.
func (c *imageReader) readCubin(image []byte) {
	if len(image) < elfHeaderBytes {
		return
	}
	little := binary.LittleEndian
	first, number, names := little.Uint64(image[40:]), int(little.Uint16(image[60:])), int(little.Uint16(image[62:]))
	section := func(i int) (name uint32, data []byte) {
		at := first + uint64(i)*sectionHeaderBytes //nolint:gosec // not negative
		if at > uint64(len(image)) || uint64(len(image))-at < sectionHeaderBytes {
			return 0, nil
		}
		s := image[at:]
		offset, size := little.Uint64(s[24:]), little.Uint64(s[32:])
		if offset > uint64(len(image)) || size > uint64(len(image))-offset {
			return 0, nil
		}
		return little.Uint32(s), image[offset : offset+size]
	}
	_, text := section(names)
	for i := range number {
		at, data := section(i)
		if uint64(at) >= uint64(len(text)) {
			continue
		}
		name, ok := bytes.CutPrefix(text[at:], []byte(infoPrefix))
		if !ok {
			continue
		}
		if kernel, _, ends := bytes.Cut(name, []byte{0}); ends {
			count, sure := countAttributes(data)
			c.add(string(kernel), signature{count: count}, sure)
		}
	}
}

// countAttributes counts the parameters in a kernel's attributes. It is sure of a count above 0, and of 0 where the parameters
// take no bytes.
func countAttributes(data []byte) (count int, sure bool) {
	for len(data) >= 4 {
		form, attribute, value := data[0], data[1], int(binary.LittleEndian.Uint16(data[2:]))
		data = data[4:]
		switch {
		case form == valueInHeader && attribute == paramBytesAttribute:
			sure = sure || value == 0
		case form == valueFollows:
			if value > len(data) {
				return 0, false
			}
			data = data[value:]
			if attribute == paramAttribute {
				count, sure = count+1, true
			}
		}
	}
	return count, sure && len(data) == 0
}
