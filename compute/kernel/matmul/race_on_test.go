//go:build race

package matmul_test

// runAllocs is the number of allocations that a run may make: a pool drops objects now and then under the race detector.
const runAllocs = 3

// tileTranspositions is how many of the four transpositions large tiles are tested with: the race detector makes the interpreter ten times slower, and
// looks at the same code in each.
const tileTranspositions = 1
