package interp

import "github.com/go-vram/vram/compute/ptx"

// The windows of generic addresses: addresses below the first are global memory.
const (
	windowShift  = 56
	sharedWindow = uint64(1) << windowShift
	localWindow  = uint64(2) << windowShift
	paramWindow  = uint64(3) << windowShift
	ownWindow    = uint64(4) << windowShift // variables of the module that Launch.Globals does not name
	gridWindow   = uint64(5) << windowShift // workspaces of cooperative launches
)

// window returns the first generic address of a space.
func window(s ptx.Space) uint64 {
	switch s {
	case ptx.Shared:
		return sharedWindow
	case ptx.Local:
		return localWindow
	case ptx.Param:
		return paramWindow
	case ptx.Generic, ptx.Global, ptx.Const:
	}
	return 0
}

// spaceAt returns the space of a generic address.
func spaceAt(address uint64) ptx.Space {
	switch address >> windowShift {
	case sharedWindow >> windowShift:
		return ptx.Shared
	case localWindow >> windowShift:
		return ptx.Local
	case paramWindow >> windowShift:
		return ptx.Param
	}
	return ptx.Global
}

// access is one access of a thread.
type access struct {
	space       ptx.Space
	address     uint64
	bytes       int
	thread      int // of the warp
	read, write bool
	strong      bool
	again       bool   // the thread's last access was the same, at the same time: see repeats
	constant    bool   // non-coherent
	deferred    bool   // an atomic operation that follows later
	value       []byte // that is stored, where it is known
}

// keyOf names an atomic variable of a block or of the device.
func keyOf(a *access) uint64 { return a.address | window(a.space) }

// field returns the word and the bits of an access in a bit map; an aligned access is in one word.
func (a *access) field(of []uint64, offset uint64) (word *uint64, field uint64) {
	return &of[offset>>6], mask(a.bytes) << (offset & 63) //nolint:mnd // bits of a word
}
