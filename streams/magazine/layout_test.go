package magazine

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/sizeclass"
)

// A slot is one cache line, and a magazine with the header that the heap gives it is 4 KiB.
func TestLengths(t *testing.T) {
	assert.EqualValues(t, cacheLine, unsafe.Sizeof(Slot{}))
	assert.EqualValues(t, 4096, unsafe.Sizeof(Magazine{})+heapHeader)
}

// Each slot of a magazine that the heap made begins on a cache line.
func TestSlotsBeginOnCacheLines(t *testing.T) {
	o := NewOwner(new(Cache), nil)
	for range 20 {
		m := o.newMagazine(1, 0, false)
		for i := range m.slots {
			assert.Zero(t, uintptr(unsafe.Pointer(&m.slots[i]))%cacheLine, "slot %d", i)
		}
		mask := uintptr(unsafe.Pointer(&m.mask)) / cacheLine
		assert.NotEqual(t, mask, uintptr(unsafe.Pointer(&m.slots[0]))/cacheLine)
		assert.NotEqual(t, mask, uintptr(unsafe.Pointer(&m.homes))/cacheLine, "the mask lies beside the owner's books")
	}
}

// The words of a cache that many goroutines write lie on lines of their own, and no bucket on two lines.
func TestHotWordsOfCacheHaveLinesOfTheirOwn(t *testing.T) {
	c := &newDesk().cache // of the heap and first in a large object, like a stream's
	assert.Zero(t, uintptr(unsafe.Pointer(c))%cacheLine)
	assert.EqualValues(t, 1, unsafe.Offsetof(c.freed)/cacheLine)
	assert.EqualValues(t, 2, unsafe.Offsetof(c.parked)/cacheLine)
	assert.EqualValues(t, 3*cacheLine, unsafe.Offsetof(c.buckets))
	assert.Zero(t, cacheLine%unsafe.Sizeof(bucket{}))
	assert.Zero(t, unsafe.Sizeof(shards{})/Shards%cacheLine)
}

// A word holds what the transition functions take it for.
func TestBitsOfTheWordsDoNotMeet(t *testing.T) {
	assert.EqualValues(t, ^uint64(0), slotBits|parkedBit|closedBit)
	assert.Zero(t, slotBits&parkedBit|slotBits&closedBit|parkedBit&closedBit)
	assert.Zero(t, uint64(Announced|Detached)&^flagMask)
	for class := range sizeclass.Count {
		assert.Zero(t, spanSlots(class)&^slotBits, "class %d", class)
		assert.NotZero(t, spanSlots(class), "class %d", class)
	}
}
