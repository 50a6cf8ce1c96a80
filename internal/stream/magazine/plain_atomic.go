//go:build race || !(amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x)

package magazine

import "sync/atomic"

// storePlain stores a word that others may load at any time, by an atomic operation: for platforms with
// shorter words, and for the race detector.
func storePlain(p *atomic.Uint64, value uint64) { p.Store(value) }
