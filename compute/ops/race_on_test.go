//go:build race

package ops_test

// runAllocs is the number of allocations that a run may make: a pool drops objects now and then under the race detector, and some
// runs have six launches and take four tensors.
const runAllocs = 24

// sweepColumns and longRows are as without the race detector, but shorter: it makes the interpreter ten times slower, and looks at the same code.
const sweepColumns = 1<<11 + 3

var longRows = []int{259, 2051}
