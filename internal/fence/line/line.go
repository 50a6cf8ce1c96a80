package line

import (
	"math"
	"sync/atomic"

	"github.com/go-vram/vram/internal/watermark/shared"
)

// Line is the progress of a stream, in numbers of its fences.
type Line struct {
	owner any

	next   atomic.Uint64 // the number of the next fence
	taken  atomic.Uint64 // the highest number of a mark
	passed atomic.Uint64 // the highest number that was seen to have passed
}

// all is the number that has passed once nothing of a stream is left to wait for.
const all = math.MaxUint64 - 1

// Init initialises a line; owner records its fences.
func (l *Line) Init(owner any) {
	l.owner = owner
	l.next.Store(1)
}

// Owner returns the value that records the line's fences.
func (l *Line) Owner() any { return l.owner }

// Next returns the number for a block whose uses on the stream have been submitted.
func (l *Line) Next() uint64 { return l.next.Load() }

// Begin returns the number of a fence that is about to be recorded. It does not cover higher numbers.
func (l *Line) Begin() uint64 { return l.next.Add(1) - 1 }

// Took records that the fence of a number was recorded.
func (l *Line) Took(number uint64) { shared.RaiseUint64(&l.taken, number) }

// Lose reverts Took for a fence that will never pass. The number is owed again, with those since the last
// that was seen to have passed, unless a fence of a higher number was recorded.
func (l *Line) Lose(number uint64) { l.taken.CompareAndSwap(number, l.passed.Load()) }

// Owed reports whether no recorded fence covers a number.
func (l *Line) Owed(number uint64) bool { return number > l.taken.Load() }

// Pass records that the fence of a number has passed.
func (l *Line) Pass(number uint64) { shared.RaiseUint64(&l.passed, number) }

// Passed reports whether the uses that a number covers are known to have finished. 0 has passed.
func (l *Line) Passed(number uint64) bool { return number <= l.passed.Load() }

// Finish records that all has passed, and that no more will come.
func (l *Line) Finish() {
	l.Took(all)
	l.Pass(all)
}

// Finished reports whether all has passed, and no more will come.
func (l *Line) Finished() bool { return l.Passed(all) }
