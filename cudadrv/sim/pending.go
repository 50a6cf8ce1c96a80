package sim

import (
	"container/heap"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// work is a memset or copy that was queued and changes bytes when it ends, all at once.
type work struct {
	call     call.Call
	dst, src cudadrv.Ptr // device memory; 0 on the host's side
	host     []byte      // host memory, of a copy to or from it
	pageable bool        // the host memory is not page-locked, and the caller waits
	bytes    int64
	value    byte // of a memset

	ends   time.Duration
	number uint64 // in the order of submission
}

// pending is the work that has not ended, the earliest end first. Work that is ordered behind other work ends later, or,
// at the end of time, was submitted later.
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

// perform does all work that has ended by now. Without bytes there is none.
func (g *gpu) perform(now time.Duration) {
	for p := &g.pending; len(p.queue) > 0 && p.queue[0].ends <= now; {
		w := p.queue[0]
		heap.Pop(&p.queue)
		if g.fault == "" && !g.do(w) {
			g.fault = "memory of an earlier " + w.call.String() + " was gone when it ran"
		}
	}
}

// failed is the error of every call after work whose memory was gone, as on hardware; nil where there was none.
func (g *gpu) failed(c call.Call) error {
	if g.fault == "" {
		return nil
	}
	return fail(c, cudadrv.IllegalAddress, "%s", g.fault)
}

// do changes the bytes. It reports whether all of them were there.
func (g *gpu) do(w work) bool {
	to, from := w.host, w.host
	ok := w.host == nil || w.pageable || g.pinned.aroundHost(w.host) != nil
	if ok && w.dst != 0 {
		to, ok = g.bytesAt(w.dst, w.bytes)
	}
	if ok && w.src != 0 {
		from, ok = g.bytesAt(w.src, w.bytes)
	}
	switch {
	case !ok:
		return false
	case w.call == call.MemsetD8Async:
		fill(to, w.value)
	default:
		copy(to, from)
	}
	return true
}

// fill writes the value to all of b, at the speed of copies also under the race detector.
func fill(b []byte, value byte) {
	if len(b) == 0 {
		return
	}
	const most = 64 << 10 // not longer: what is copied from stays in the processor's cache
	b[0] = value
	for done := 1; done < len(b); {
		done += copy(b[done:], b[:min(done, most)])
	}
}
