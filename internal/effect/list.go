// Package effect keeps the effects that a turn leaves to be carried out.
package effect

import "iter"

// List is a list of effects, oldest first. An effect is taken from the list before it is carried out: if it
// panics only that one is lost, and the rest are carried out afterwards. The zero value is empty.
type List[T any] struct {
	all   []T
	taken int // from the front; at most all
}

// Push appends an effect.
func Push[T any](l *List[T], v T) { l.all = append(l.all, v) }

// Pop takes the oldest remaining effect.
func Pop[T any](l *List[T]) (v T, ok bool) {
	if l.taken == len(l.all) {
		return v, false
	}
	v = l.all[l.taken]
	l.taken++
	return v, true
}

// Popped takes the effects one after the other, each before it is carried out.
func Popped[T any](l *List[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for l.taken < len(l.all) {
			l.taken++
			if !yield(l.all[l.taken-1]) {
				return
			}
		}
	}
}

// Left returns the effects that were not taken yet. The slice is the list's: an entry may be changed, and is
// valid until the next Push.
func Left[T any](l *List[T]) []T { return l.all[l.taken:] }

// Reset empties the list and keeps its capacity. It drops all references.
func Reset[T any](l *List[T]) {
	if len(l.all) > 0 {
		clear(l.all)
		l.all, l.taken = l.all[:0], 0
	}
}
