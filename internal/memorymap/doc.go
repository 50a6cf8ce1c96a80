// Package memorymap draws up a list of memory ranges by state, and keeps it short.
//
// # Words
//
// A Range is memory side by side in one State. A Builder takes ranges in rising order. It joins neighbours that differ in nothing but
// their length; then it joins neighbours that are shorter than the resolution and begin in the same cell, which is as long as the
// resolution, into one mixed range with the sums by state. So a list has at most two ranges for each cell, and one more for each gap,
// and the borders of a range that is as long as the resolution are exact.
//
// # Invariants
//
// The ranges of a list rise and do not overlap; together they cover exactly the bytes that were added, and the
// sums by state of the list are those of the added ranges.
package memorymap
