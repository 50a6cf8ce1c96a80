//go:build linux && (amd64 || arm64)

package library

import (
	"strings"
	"unsafe"
)

// longestText bounds what is read of a C string.
const longestText = 4096

// Text copies a C string that a function has returned; "" for a null pointer.
func Text(at uintptr) string {
	if at == 0 {
		return ""
	}
	p := *(*unsafe.Pointer)(unsafe.Pointer(&at)) // memory of the library's, which Go does not move
	var b strings.Builder
	for i := range longestText {
		c := *(*byte)(unsafe.Add(p, i))
		if c == 0 {
			break
		}
		b.WriteByte(c)
	}
	return b.String()
}
