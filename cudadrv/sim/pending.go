package sim

import (
	"container/heap"
	"encoding/binary"
	"slices"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// work is a memset, a copy or a kernel that was queued and changes bytes when it ends, all at once.
type work struct {
	call     call.Call
	dst, src cudadrv.Ptr // device memory; 0 on the host's side
	host     []byte      // host memory, of a copy to or from it
	pageable bool        // the host memory was not page-locked: the caller waits, except for a graph's launch
	bytes    int64
	value    uint32 // of a memset
	unit     int64

	rows               int64 // of a copy of rows, else 0; bytes is then their sum
	dstPitch, srcPitch int64

	on             *gpu // whose stream it was queued on
	dstGPU, srcGPU *gpu // of a copy between devices, else nil

	performed func() // notification of the finished work, or nil

	execution Execution // of a kernel, which has nothing of the above
	name      string    // of the kernel

	ends   time.Duration
	number uint64 // in the order of submission
}

// pending is the work that has not ended, the earliest end first. Work that waits for other work ends later, or, at the end of
// time, was submitted later.
type pending struct {
	queue queue
	count uint64 // ever
}

type queue []work

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q queue) Less(i, j int) bool {
	if q[i].ends != q[j].ends {
		return q[i].ends < q[j].ends
	}
	return q[i].number < q[j].number
}

// Push and Pop are container/heap's.
func (q *queue) Push(x any) { *q = append(*q, x.(work)) } //nolint:forcetypeassert // add pushes nothing else

// Pop takes the last one off.
func (q *queue) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = work{}
	*q = (*q)[:last]
	return w
}

func (p *pending) add(w work) {
	p.count++
	w.number = p.count
	heap.Push(&p.queue, w)
}

// drop forgets the work of a GPU's streams.
func (p *pending) drop(g *gpu) {
	p.queue = slices.DeleteFunc(p.queue, func(w work) bool { return w.on == g })
	heap.Init(&p.queue)
}

// perform does all work that has ended by now, on all GPUs in one order. Without bytes there is none.
func (d *Driver) perform(now time.Duration) {
	for p := &d.pending; len(p.queue) > 0 && p.queue[0].ends <= now; {
		w := p.queue[0]
		heap.Pop(&p.queue)
		switch g := w.on; {
		case g.fault != "":
		case w.execution != nil:
			g.run(w)
		case !g.do(w):
			g.fault, g.faultResult = "memory of an earlier "+w.call.String()+" was gone when it ran", cudadrv.IllegalAddress
		case w.performed != nil:
			w.performed()
		}
	}
}

// failed returns the error of every call after work that failed, as on hardware; nil where there was none. It wraps the
// executor's error.
func (g *gpu) failed(c call.Call) error {
	if g.fault == "" {
		return nil
	}
	err := fail(c, g.faultResult, "%s", g.fault)
	if g.faultCause == nil {
		return err
	}
	return &refusal{err, g.faultCause}
}

// do changes the bytes. It reports whether all of them were there.
func (g *gpu) do(w work) bool {
	to, from := w.host, w.host
	ok := w.host == nil || w.pageable || g.pinned.aroundHost(w.host) != nil
	if w.rows > 0 {
		return g.copyRows(w)
	}
	if ok && w.dst != 0 {
		to, ok = g.orElse(w.dstGPU).bytesAt(w.dst, w.bytes)
	}
	if ok && w.src != 0 {
		from, ok = g.orElse(w.srcGPU).bytesAt(w.src, w.bytes)
	}
	switch {
	case !ok:
		return false
	case w.unit > 0:
		fill(to, w.value, w.unit)
	default:
		copy(to, from)
	}
	return true
}

// orElse returns the other GPU, or this one where there is no other.
func (g *gpu) orElse(other *gpu) *gpu {
	if other != nil {
		return other
	}
	return g
}

// copyRows changes the bytes of all rows, or of none.
func (g *gpu) copyRows(w work) bool {
	width := w.bytes / w.rows
	if !g.rowsAt(w.dst, w.dstPitch, width, w.rows) || !g.rowsAt(w.src, w.srcPitch, width, w.rows) {
		return false
	}
	for row := range w.rows {
		to, _ := g.bytesAt(w.dst+cudadrv.Ptr(row*w.dstPitch), width)
		from, _ := g.bytesAt(w.src+cudadrv.Ptr(row*w.srcPitch), width)
		copy(to, from)
	}
	return true
}

// fill writes values of at most 4 bytes to all of b, at the speed of copies also under the race detector.
func fill(b []byte, value uint32, unit int64) {
	const most = 64 << 10 // not longer: the source stays in the processor's cache
	var element [4]byte
	binary.LittleEndian.PutUint32(element[:], value)
	for done := copy(b, element[:unit]); done < len(b); {
		done += copy(b[done:], b[:min(done, most)])
	}
}
