package cuda

import (
	"bytes"
	"encoding/binary"
)

// An image says how many parameters its kernels have. The driver tells where each one lies, but not how many there are: asking for one too
// many is an error of the driver's, which tools report that watch its calls, as NVIDIA's compute-sanitizer does.

// paramCounts are the numbers of parameters of an image's kernels, by name. It has those alone that are sure. A fat binary, whose parts may be
// compressed, has none.
func paramCounts(image []byte) map[string]int {
	counts := map[string]int{}
	switch {
	case bytes.HasPrefix(image, []byte("\x7fELF")):
		countInCubin(image, counts)
	case bytes.HasPrefix(image, []byte{0x50, 0xed, 0x55, 0xba}):
	default:
		countInText(image, counts)
	}
	return counts
}

// countInText looks for ".entry name ( .param ..., .param ... )" in PTX. A name with two lists that differ is not sure: one may be in a comment.
func countInText(text []byte, counts map[string]int) {
	var unsure []string
	for {
		_, rest, found := bytes.Cut(text, []byte(".entry"))
		if !found {
			break
		}
		text = rest
		rest = skipBlank(rest)
		n := 0
		for n < len(rest) && isNameByte(rest[n]) {
			n++
		}
		name := string(rest[:n])
		count, ok := countParams(skipBlank(rest[n:]))
		if before, again := counts[name]; !ok || again && before != count {
			unsure = append(unsure, name)
			continue
		}
		counts[name] = count
	}
	for _, name := range unsure {
		delete(counts, name)
	}
}

// countParams counts the parameters of a list. A kernel without a list has none.
func countParams(text []byte) (count int, ok bool) {
	if len(text) == 0 {
		return 0, false
	}
	if text[0] != '(' {
		return 0, true
	}
	for text = text[1:]; len(text) > 0; {
		rest := skipBlank(text)
		switch {
		case len(rest) < len(text):
			text = rest
		case text[0] == ')':
			return count, true
		case bytes.HasPrefix(text, []byte(".param")) && len(text) > len(".param") && !isNameByte(text[len(".param")]):
			count++
			text = text[len(".param"):]
		default:
			text = text[1:]
		}
	}
	return 0, false
}

// skipBlank is the text from the first byte on that is neither blank nor in a comment.
func skipBlank(text []byte) []byte {
	for {
		text = bytes.TrimLeft(text, " \t\r\n\v\f")
		var end []byte
		switch {
		case bytes.HasPrefix(text, []byte("//")):
			end = []byte("\n")
		case bytes.HasPrefix(text, []byte("/*")):
			end = []byte("*/")
		default:
			return text
		}
		_, text, _ = bytes.Cut(text[2:], end)
	}
}

func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '$' || b == '%'
}

const (
	infoPrefix = ".nv.info." // sections with attributes of a kernel

	valueInHeader = 3 // a form of attributes: the last two bytes of the header are the value
	valueBehind   = 4 // they are the bytes of the value, which follows

	paramBytesAttribute = 0x19 // EIATTR_CBANK_PARAM_SIZE: of all parameters
	paramAttribute      = 0x17 // EIATTR_KPARAM_INFO: one for each parameter
)

// countInCubin reads the attributes of each kernel in an ELF file of 64 bits. What does not fit is left out.
func countInCubin(image []byte, counts map[string]int) {
	const headerBytes, sectionBytes = 64, 64
	if len(image) < headerBytes {
		return
	}
	little := binary.LittleEndian
	first, number, names := little.Uint64(image[40:]), int(little.Uint16(image[60:])), int(little.Uint16(image[62:]))
	section := func(i int) (name uint32, data []byte) {
		at := first + uint64(i)*sectionBytes //nolint:gosec // not negative
		if at > uint64(len(image)) || uint64(len(image))-at < sectionBytes {
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
		if int64(at) >= int64(len(text)) {
			continue
		}
		name, _, _ := bytes.Cut(text[at:], []byte{0})
		kernel, ok := bytes.CutPrefix(name, []byte(infoPrefix))
		if !ok {
			continue
		}
		if count, sure := countAttributes(data); sure {
			counts[string(kernel)] = count
		}
	}
}

// countAttributes counts the parameters in a kernel's attributes. It is sure where there are some, or their bytes are none.
func countAttributes(data []byte) (count int, sure bool) {
	for len(data) >= 4 {
		form, attribute, value := data[0], data[1], int(binary.LittleEndian.Uint16(data[2:]))
		data = data[4:]
		switch {
		case form == valueInHeader && attribute == paramBytesAttribute:
			sure = sure || value == 0
		case form == valueBehind:
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
