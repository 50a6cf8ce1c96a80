//go:build race

package matmul_test

// runAllocs is the number of allocations that a run may make: a pool drops objects now and then under the race detector.
const runAllocs = 3
