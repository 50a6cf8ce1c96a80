//go:build !race

package matmul_test

// runAllocs is the number of allocations that a run may make.
const runAllocs = 0

// tileTranspositions is how many of the four transpositions large tiles are tested with.
const tileTranspositions = 4
