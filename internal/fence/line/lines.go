package line

import "sync/atomic"

// Count is the number of lines with a number in a Lines: the bits of a word, without one that says that there
// are more.
const Count = 63

// Lines are the lines of a device's streams that have a number. Removed numbers are reused: a block that
// still names one waits for one stream more, and never for less, since a line is removed once all of it has
// passed. The zero value is ready.
type Lines struct {
	at [Count]atomic.Pointer[Line]
}

// Add assigns a number to a line; ok is false if all are in use.
func (l *Lines) Add(n *Line) (number int, ok bool) {
	for i := range l.at {
		if l.at[i].Load() == nil && l.at[i].CompareAndSwap(nil, n) {
			return i, true
		}
	}
	return 0, false
}

// Remove releases the number of a line. Precondition: all of it has passed.
func (l *Lines) Remove(n *Line) {
	for i := range l.at {
		if l.at[i].CompareAndSwap(n, nil) {
			return
		}
	}
}

// At returns the line of a number; nil if there is none: the uses by its stream have passed.
func (l *Lines) At(number int) *Line { return l.at[number].Load() }
