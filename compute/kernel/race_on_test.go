//go:build race

package kernel_test

// runAllocs is the number of allocations that a run may make: a pool drops objects now and then under the race detector.
const runAllocs = 3
