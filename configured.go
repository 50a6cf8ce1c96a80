package vram

import (
	"sync/atomic"
	"unsafe"
)

// configured is the atomic pointer of a device to its Config. It is no atomic.Pointer, for which the linker
// would take it that Config is printed somewhere, and link its String, all that this prints, and reflection
// over both with every program: 12 KB.
type configured struct{ p unsafe.Pointer }

func (c *configured) Load() *Config { return (*Config)(atomic.LoadPointer(&c.p)) }

func (c *configured) Store(next *Config) { atomic.StorePointer(&c.p, unsafe.Pointer(next)) }

func (c *configured) CompareAndSwap(old, next *Config) bool {
	return atomic.CompareAndSwapPointer(&c.p, unsafe.Pointer(old), unsafe.Pointer(next))
}
