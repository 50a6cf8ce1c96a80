//go:build linux && (amd64 || arm64)

package dynamic

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

const (
	// mostArgs is the longest argument list: cuIpcOpenEventHandle has two, of which one takes the room of 13 on amd64.
	// cuLaunchKernel has 11.
	mostArgs = 14
	// blockBytes is the largest structure that a call takes or fills: CUDA_MEMCPY2D.
	blockBytes = 128
	// shardCount is how many words the frames' free bits are spread over. Not fewer: goroutines that poll
	// events at once would meet on one word. Not more: Close looks at all.
	shardCount = 8
	// shardFrames is the number of calls in progress of a shard before the next one is used: together 248, more than a program
	// usually has threads in the driver. Not more: one bit of the word is closedBit.
	shardFrames = 31

	closedBit = uint64(1) << 63
	allFree   = uint64(1)<<shardFrames - 1
)

// frame is the memory of one call: arguments, results, and the list for changing the context. It is in the heap, which does not
// move, and belongs to one call at a time.
type frame struct {
	args    [mostArgs]uintptr
	current [1]uintptr // the argument of calls around the call: cuCtxPushCurrent, cuCtxPopCurrent, the exchange of modes
	out     [2]uint64
	extra   [5]uintptr // the list that names a kernel's parameters
	bytes   uintptr    // of a kernel's parameters
	block   [blockBytes / 8]uint64
	popped  uint64
	mode    uint64         // of captures, which cuThreadExchangeStreamCaptureMode exchanges
	keep    unsafe.Pointer // memory in Go's heap that an argument points to
	failing bool           // the context could not be made current

	home *shard // nil: an extra frame
	bit  uint64
}

// pointer returns the address of an out parameter, for C.
func (f *frame) pointer(i int) uintptr { return uintptr(unsafe.Pointer(&f.out[i])) }

// int32 returns the first out parameter, which C wrote as an int.
func (f *frame) int32() int32 { return *(*int32)(unsafe.Pointer(&f.out[0])) }

// second returns the second out parameter, which C wrote as an int.
func (f *frame) second() int32 { return *(*int32)(unsafe.Pointer(&f.out[1])) }

// address returns the first out parameter, which C wrote as a pointer to memory that is not Go's.
func (f *frame) address() unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&f.out[0])) }

// hold returns the address of Go memory for C. The frame keeps the memory, which so is in the heap.
func (f *frame) hold(p unsafe.Pointer) uintptr {
	f.keep = p
	return uintptr(p)
}

// shard is a set of frames. A frame is free while its bit is set, and in a call otherwise; it is taken by compare-and-swap and
// returned by an OR. Once closedBit is set, none is taken.
type shard struct {
	free   atomic.Uint64
	_      [56]byte // the word that all callers write has a cache line of its own
	frames [shardFrames]frame
}

// gate gives frames to calls while the device is open. A frame in use is a call in progress, which Close waits for. If all are
// in use, extra frames come from Go's heap.
type gate struct {
	shards [shardCount]shard
	extra  atomic.Int64 // extra frames that are out
	closed atomic.Bool
	left   chan struct{} // has a token once a call has ended after the closing began
}

func (g *gate) init() {
	g.left = make(chan struct{}, 1)
	for i := range g.shards {
		s := &g.shards[i]
		for j := range s.frames {
			s.frames[j].home, s.frames[j].bit = s, 1<<j
		}
		s.free.Store(allFree)
	}
}

// enter takes a frame, or gives nil where the device is closed. It neither blocks nor, up to all frames,
// allocates.
func (g *gate) enter() *frame {
	first := nearby()
	for i := range uint64(shardCount) {
		s := &g.shards[(first+i)%shardCount]
		for {
			free := s.free.Load()
			if free&closedBit != 0 {
				return nil
			}
			bit := free & -free
			if bit == 0 {
				break
			}
			if s.free.CompareAndSwap(free, free&^bit) {
				return &s.frames[bits.TrailingZeros64(bit)]
			}
		}
	}
	g.extra.Add(1)
	f := &frame{}
	if g.closed.Load() {
		g.leave(f)
		return nil
	}
	return f
}

// leave returns the frame.
func (g *gate) leave(f *frame) {
	f.keep, f.failing = nil, false
	if f.home == nil {
		g.extra.Add(-1)
		if g.closed.Load() {
			g.wake()
		}
		return
	}
	if f.home.free.Or(f.bit)&closedBit != 0 {
		g.wake()
	}
}

// wake lets a closer check again. One token is enough for any number of calls that ended before the check.
func (g *gate) wake() {
	select {
	case g.left <- struct{}{}:
	default:
	}
}

// close refuses later calls and waits for those in progress. It is called once.
func (g *gate) close() {
	g.closed.Store(true)
	for i := range g.shards {
		g.shards[i].free.Or(closedBit)
	}
	for !g.idle() {
		<-g.left
	}
}

// idle reports whether no call is in progress, once closed.
func (g *gate) idle() bool {
	for i := range g.shards {
		if g.shards[i].free.Load() != closedBit|allFree {
			return false
		}
	}
	return g.extra.Load() == 0
}

// nearby picks a shard by the goroutine's stack, so that goroutines mostly keep to one each.
func nearby() uint64 {
	var here byte
	const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio spreads neighbouring addresses
	return uint64(uintptr(unsafe.Pointer(&here))>>11) * golden >> 61
}
