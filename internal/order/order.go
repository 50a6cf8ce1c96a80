// Package order sorts slices of any element by one body of code, and has Insert and Delete in few instructions. The functions of
// package slices are compiled anew for each kind of element, a sort with 5 to 15 KB of instructions and three times as much of tables
// and symbols: vram sorts few elements and many kinds.
package order

import (
	"cmp"
	"math"
	"math/bits"
)

// By puts a slice in order: compare is negative where the first element comes first, positive where the second does. Elements that
// compare equal may change places. It allocates nothing. It takes n steps where the slice is nearly in order, n log n at worst.
func By[E any](s []E, compare func(a, b *E) int) {
	x := indexed{func(i, j int) bool { return compare(&s[i], &s[j]) < 0 }, func(i, j int) { s[i], s[j] = s[j], s[i] }}
	x.sort(len(s))
}

// Sort is By for n elements that only their places name: less reports whether one comes first, swap exchanges two. Slices of structs
// are sorted by it, since By would be compiled for each of them, with all of the struct in its name.
func Sort(n int, less func(i, j int) bool, swap func(i, j int)) { indexed{less, swap}.sort(n) }

// Stably is By for elements that compare equal and are to keep their order. It allocates where the slice is not in order yet.
func Stably[E any](s []E, compare func(a, b *E) int) {
	if Sorted(s, compare) {
		return
	}
	old, places := append([]E(nil), s...), make([]int, len(s))
	for i := range places {
		places[i] = i
	}
	By(places, func(a, b *int) int { return cmp.Or(compare(&old[*a], &old[*b]), *a-*b) })
	for i, from := range places {
		s[i] = old[from]
	}
}

// Insert puts an element in at a place; the rest moves up.
func Insert[E any](s []E, at int, e E) []E {
	s = append(s, e)
	copy(s[at+1:], s[at:])
	s[at] = e
	return s
}

// Search is the first of n places at which reached holds, n where it holds at none: it must hold at all
// places behind one at which it holds.
func Search(n int, reached func(at int) bool) int {
	from, to := 0, n
	for from < to {
		if middle := (from + to) / 2; reached(middle) {
			to = middle
		} else {
			from = middle + 1
		}
	}
	return from
}

// Delete takes the elements out for which drop holds; the rest moves down, and the places behind it are zero.
func Delete[E any](s []E, drop func(E) bool) []E {
	kept := 0
	for _, e := range s {
		if !drop(e) {
			s[kept] = e
			kept++
		}
	}
	clear(s[kept:])
	return s[:kept]
}

// Keys are the keys of a map, rising.
func Keys[K cmp.Ordered, V any](m map[K]V) []K { return AppendKeys(make([]K, 0, len(m)), m) }

// AppendKeys puts the keys of a map behind others, and all in rising order.
func AppendKeys[K cmp.Ordered, V any](s []K, m map[K]V) []K {
	for k := range m {
		s = append(s, k)
	}
	By(s, Rising[K])
	return s
}

// Rising compares numbers and strings as they are.
func Rising[K cmp.Ordered](a, b *K) int { return cmp.Compare(*a, *b) }

// Sorted reports whether a slice is in order.
func Sorted[E any](s []E, compare func(a, b *E) int) bool {
	for i := 1; i < len(s); i++ {
		if compare(&s[i-1], &s[i]) > 0 {
			return false
		}
	}
	return true
}

// swapsEach is how many swaps an element may cost on average before the slice counts as out of order. Not fewer: one element that
// changed must be able to cross the slice. Not more: what the swaps have brought is lost to the quicksort that follows.
const swapsEach = 1

// indexed is a slice as the functions that compare and swap its elements by their places.
type indexed struct {
	less func(i, j int) bool
	swap func(i, j int)
}

// sort inserts one element after the other, and takes the slice apart where that would take long.
func (x indexed) sort(length int) {
	if !x.insert(0, length, swapsEach*length) {
		x.quick(0, length, 2*bits.Len(uint(length)))
	}
}

// insert puts [from, to) in order by that many swaps at most. It reports whether they were enough.
func (x indexed) insert(from, to, swaps int) bool {
	for i := from + 1; i < to; i++ {
		for at := i; at > from && x.less(at, at-1); at-- {
			if swaps--; swaps < 0 {
				return false
			}
			x.swap(at, at-1)
		}
	}
	return true
}

// short is a part that is sorted by insertion.
const short = 12

// quick sorts [from, to): Hoare's quicksort, and where it has been unlucky for that many levels a heap.
func (x indexed) quick(from, to, levels int) {
	for ; to-from > short; levels-- {
		if levels == 0 {
			x.heap(from, to)
			return
		}
		middle := x.split(from, to)
		if middle-from < to-middle {
			x.quick(from, middle, levels-1)
			from = middle + 1
		} else {
			x.quick(middle+1, to, levels-1)
			to = middle
		}
	}
	x.insert(from, to, math.MaxInt)
}

// split moves what is smaller than one of the elements in front of it, and what is larger behind it. It returns its place.
func (x indexed) split(from, to int) (middle int) {
	half, last := int(uint(from+to)>>1), to-1
	if x.less(last, from) {
		x.swap(from, last)
	}
	if x.less(from, half) { // the median of the three comes first
		x.swap(from, half)
		if x.less(last, from) {
			x.swap(from, last)
		}
	}
	i, j := from+1, last
	for {
		for i <= j && x.less(i, from) {
			i++
		}
		for i <= j && x.less(from, j) {
			j--
		}
		if i >= j {
			x.swap(from, j)
			return j
		}
		x.swap(i, j)
		i++
		j--
	}
}

func (x indexed) heap(from, to int) {
	for top := (to-from)/2 - 1; top >= 0; top-- {
		x.sink(from, top, to-from)
	}
	for last := to - from - 1; last > 0; last-- {
		x.swap(from, from+last)
		x.sink(from, 0, last)
	}
}

// sink moves an element of the heap that begins at from down until none below it is larger.
func (x indexed) sink(from, at, length int) {
	for child := 2*at + 1; child < length; child = 2*at + 1 {
		if child+1 < length && x.less(from+child, from+child+1) {
			child++
		}
		if !x.less(from+at, from+child) {
			return
		}
		x.swap(from+at, from+child)
		at = child
	}
}
