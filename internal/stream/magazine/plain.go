//go:build !race && (amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x)

package magazine

import (
	"sync/atomic"
	"unsafe"
)

// storePlain stores a word that only the goroutine that freed the slot stores, and that others may load at
// any time. On platforms with 64-bit words such a store is seen as a whole or not at all. It costs a fraction
// of an atomic store, which on some processors is an exchange.
func storePlain(p *atomic.Uint64, value uint64) {
	*(*uint64)(unsafe.Pointer(p)) = value
}
