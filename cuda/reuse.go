package cuda

import (
	"slices"

	"github.com/go-vram/vram/cudadrv"
)

// reuse is the order of the work in a capture, as far as it decides which freed memory a captured stream may have: memory of
// which all uses are before the stream's position, so that the graph has them in order.
//
// Streams have numbers, from 0 on. Each counts its uses of memory. A stream's position is a count for each stream (a vector
// clock): uses of others up to it precede all later work of the stream. A position that covers a use covers everything before
// that use, since a wait merges the whole position: so the latest use of memory stands for the earlier uses that precede it.
type reuse struct {
	positions [][]uint64
	uses      []memoryUse // in no order; at most one of a stream for the same bytes
}

// memoryUse is the last use of bytes by a stream.
type memoryUse struct {
	memory memorySpan
	by     int
	count  uint64
}

// memorySpan is the bytes from first to before end.
type memorySpan struct{ first, end cudadrv.Ptr }

// spanOf returns the memory of a buffer.
func spanOf(b Buffer) memorySpan {
	return memorySpan{b.Ptr(), b.Ptr() + cudadrv.Ptr(b.Bytes())} //nolint:gosec // not negative
}

func (m memorySpan) overlaps(o memorySpan) bool { return m.first < o.end && o.first < m.end }

// add adds a stream that waits for nothing. Its number is the count of streams before it.
func (r *reuse) add() {
	for i := range r.positions {
		r.positions[i] = append(r.positions[i], 0)
	}
	r.positions = append(r.positions, make([]uint64, len(r.positions)+1))
}

// remove takes the last stream out, which has used nothing.
func (r *reuse) remove() {
	n := len(r.positions) - 1
	r.positions = r.positions[:n]
	for i := range r.positions {
		r.positions[i] = r.positions[i][:n]
	}
}

// wait orders later work of a stream after all work so far of another one.
func (r *reuse) wait(stream, behind int) {
	for i, count := range r.positions[behind] {
		r.positions[stream][i] = max(r.positions[stream][i], count)
	}
}

// use notes work of a stream on memory, and returns its count.
func (r *reuse) use(stream int, m memorySpan) (count uint64) {
	r.positions[stream][stream]++
	count = r.positions[stream][stream]
	for i := range r.uses {
		if u := &r.uses[i]; u.by == stream && u.memory == m {
			u.count = count
			return count
		}
	}
	r.uses = append(r.uses, memoryUse{m, stream, count})
	return count
}

// behind reports whether a stream's later work follows a use by another stream, or its own.
func (r *reuse) behind(stream, by int, count uint64) bool { return r.positions[stream][by] >= count }

// free reports whether a stream's later work follows all uses of memory.
func (r *reuse) free(stream int, m memorySpan) bool {
	return !slices.ContainsFunc(r.uses, func(u memoryUse) bool {
		return u.memory.overlaps(m) && !r.behind(stream, u.by, u.count)
	})
}

// take assigns free memory to a stream, and returns the count of that use, which replaces earlier ones.
func (r *reuse) take(stream int, m memorySpan) (count uint64) {
	var left []memoryUse
	for _, u := range r.uses {
		if !u.memory.overlaps(m) {
			left = append(left, u)
			continue
		}
		if u.memory.first < m.first {
			left = append(left, memoryUse{memorySpan{u.memory.first, m.first}, u.by, u.count})
		}
		if m.end < u.memory.end {
			left = append(left, memoryUse{memorySpan{m.end, u.memory.end}, u.by, u.count})
		}
	}
	r.uses = left
	return r.use(stream, m)
}
