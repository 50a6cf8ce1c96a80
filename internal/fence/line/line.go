package line

import (
	"math"
	"sync/atomic"
)

// Line is how far a stream is, in numbers of its fences.
type Line struct {
	owner any

	next   atomic.Uint64 // the number of the fence that is begun next
	taken  atomic.Uint64 // the highest number of a mark
	passed atomic.Uint64 // the highest number that was seen to have passed
}

// all is the number that has passed once nothing of a stream is left to wait for.
const all = math.MaxUint64 - 1

// Init makes a line ready; owner is who takes its fences.
func (l *Line) Init(owner any) {
	l.owner = owner
	l.next.Store(1)
}

// Owner is who takes the line's fences.
func (l *Line) Owner() any { return l.owner }

// Next is the number that a block names whose uses on the stream have been submitted.
func (l *Line) Next() uint64 { return l.next.Load() }

// Begin is the number of a fence that is about to be taken. What names a higher one is not covered.
func (l *Line) Begin() uint64 { return l.next.Add(1) - 1 }

// Took says that the fence of a number was taken.
func (l *Line) Took(number uint64) { raise(&l.taken, number) }

// Lose takes back that the fence of a number was taken, which will never pass. The number is owed again, with those since the last
// that was seen to have passed, unless a fence of a higher number was taken.
func (l *Line) Lose(number uint64) { l.taken.CompareAndSwap(number, l.passed.Load()) }

// Owed reports whether no fence was taken yet that covers a number.
func (l *Line) Owed(number uint64) bool { return number > l.taken.Load() }

// Pass says that the fence of a number has passed.
func (l *Line) Pass(number uint64) { raise(&l.passed, number) }

// Passed reports whether the uses have finished that a number covers, as far as anybody has looked. 0 has passed.
func (l *Line) Passed(number uint64) bool { return number <= l.passed.Load() }

// Finish says that all has passed, and that nothing more will come.
func (l *Line) Finish() {
	l.Took(all)
	l.Pass(all)
}

// Finished reports whether all has passed, and nothing more will come.
func (l *Line) Finished() bool { return l.Passed(all) }

func raise(word *atomic.Uint64, number uint64) {
	for old := word.Load(); old < number && !word.CompareAndSwap(old, number); old = word.Load() {
	}
}
