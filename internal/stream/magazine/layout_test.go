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
	assert.EqualValues(t, 4096, unsafe.Sizeof(Span{})+heapHeader)
	assert.EqualValues(t, 4096, unsafe.Sizeof(Exact{})+heapHeader)
	assert.EqualValues(t, 4096, unsafe.Sizeof(layout{})+heapHeader)
	assert.EqualValues(t, slotsOffset, unsafe.Offsetof(Span{}.slots))
	assert.EqualValues(t, slotsOffset, unsafe.Offsetof(Exact{}.slots))
	assert.EqualValues(t, slotsOffset, unsafe.Offsetof(layout{}.slots))
	assert.EqualValues(t, booksBytes, unsafe.Sizeof(spanBooks{}))
	assert.EqualValues(t, booksBytes, unsafe.Sizeof(exactBooks{}))
}

// Each slot of a magazine that the heap made begins on a cache line.
func TestSlotsBeginOnCacheLines(t *testing.T) {
	o := NewOwner(new(Cache), nil)
	for range 20 {
		m := o.Spans.New(0, 1, 0)
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

// The layout of a word is the one of the transition functions.
func TestBitsOfTheWordsDoNotMeet(t *testing.T) {
	assert.EqualValues(t, ^uint64(0), slotBits|parkedBit|closedBit)
	assert.Zero(t, slotBits&parkedBit|slotBits&closedBit|parkedBit&closedBit)
	assert.Zero(t, uint64(Announced|Detached)&^flagMask)
	for class := range sizeclass.Count {
		assert.Zero(t, SpanSlots(class)&^slotBits, "class %d", class)
		assert.NotZero(t, SpanSlots(class), "class %d", class)
	}
}
