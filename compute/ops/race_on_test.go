//go:build race

package ops_test

// runAllocs is the number of allocations that a run may make: a pool drops objects now and then under the race detector, and
// some runs have six launches and take four tensors.
const runAllocs = 24
