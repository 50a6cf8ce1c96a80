package bench

import (
	"math/bits"
	"sync"
)

// mutexHeap is the work of ten minutes: free lists in a map under one mutex, sizes rounded up to powers of two so that the
// lists have hits. It never frees memory and returns numbers from a counter where a list is empty.
type mutexHeap struct {
	mu   sync.Mutex
	free map[int64][]uint64
	next uint64
}

type mutexBuffer struct {
	heap  *mutexHeap
	begin uint64
	bytes int64
}

func newMutexHeap() *mutexHeap { return &mutexHeap{free: map[int64][]uint64{}} }

// Alloc takes from the list of the size.
func (h *mutexHeap) Alloc(bytes int64) (mutexBuffer, error) {
	classBytes := int64(1) << bits.Len64(uint64(bytes-1))
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.free[classBytes]
	if last := len(list) - 1; last >= 0 {
		begin := list[last]
		h.free[classBytes] = list[:last]
		return mutexBuffer{heap: h, begin: begin, bytes: classBytes}, nil
	}
	begin := h.next
	h.next += uint64(classBytes)
	return mutexBuffer{heap: h, begin: begin, bytes: classBytes}, nil
}

// Free puts back on the list of the size.
func (b mutexBuffer) Free() error {
	b.heap.mu.Lock()
	defer b.heap.mu.Unlock()
	b.heap.free[b.bytes] = append(b.heap.free[b.bytes], b.begin)
	return nil
}
