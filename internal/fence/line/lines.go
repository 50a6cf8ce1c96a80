package line

import "sync/atomic"

// Count is the number of lines that a Lines tells apart: the bits of a word beside one that says that there
// are more.
const Count = 63

// Lines are the lines of a device's streams that have a number. A number that was given back is used again: what
// still names it waits for one stream more, and not for less, since a line is removed once all of it has passed.
// The zero value is ready.
type Lines struct {
	at [Count]atomic.Pointer[Line]
}

// Add gives a line a number; ok is false if all are in use.
func (l *Lines) Add(n *Line) (number int, ok bool) {
	for i := range l.at {
		if l.at[i].Load() == nil && l.at[i].CompareAndSwap(nil, n) {
			return i, true
		}
	}
	return 0, false
}

// Remove gives the number of a line back. Precondition: all of it has passed.
func (l *Lines) Remove(n *Line) {
	for i := range l.at {
		if l.at[i].CompareAndSwap(n, nil) {
			return
		}
	}
}

// At is the line of a number, nil if there is none: what was used by its stream has passed.
func (l *Lines) At(number int) *Line { return l.at[number].Load() }
