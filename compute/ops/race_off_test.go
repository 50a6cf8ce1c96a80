//go:build !race

package ops_test

// runAllocs is the number of allocations that a run may make.
const runAllocs = 0

// sweepColumns is the length of rows in the sweep over all operations: several blocks share one.
const sweepColumns = 1<<15 + 3

// longRows are lengths that a type of 16 bits does not have as a number: bfloat16 none but 65520, float16 the odd ones and those above 65504.
var longRows = []int{259, 2051, 65520, 70000}
