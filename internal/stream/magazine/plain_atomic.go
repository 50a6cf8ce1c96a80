//go:build race || !(amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x)

package magazine

import "sync/atomic"

// storePlain stores a word that others may load at any time: where a word is shorter than 64 bits,
// and for the race detector, by an atomic operation.
func storePlain(p *atomic.Uint64, value uint64) { p.Store(value) }
