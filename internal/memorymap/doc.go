// Package memorymap builds a list of memory ranges by state, and keeps it short.
//
// # Words
//
// A Range is contiguous memory in one State. A Builder takes ranges in rising order. It merges neighbours
// that differ only in length. Then it merges neighbours that are shorter than the resolution and begin in the
// same cell, which has the length of the resolution, into one mixed range with the sums by state. So a list
// has at most two ranges for each cell and one for each gap, and the borders of ranges of at least the
// resolution are exact.
//
// # Invariants
//
// The ranges of a list rise and do not overlap. Together they cover exactly the added bytes, and the sums by
// state of the list are equal to the sums of the added ranges.
package memorymap
