package streams

import (
	"sync/atomic"
	"unsafe"
)

// lastStats are the statistics as they were read last, and at a stream's end; nil before. It is no atomic.Pointer, as a field of which,
// reachable from messages, the linker would take Stats to be printed somewhere, and link its String.
type lastStats struct{ p unsafe.Pointer }

func (l *lastStats) load() *Stats { return (*Stats)(atomic.LoadPointer(&l.p)) }

func (l *lastStats) store(last *Stats) { atomic.StorePointer(&l.p, unsafe.Pointer(last)) }
