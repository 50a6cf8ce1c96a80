//go:build !race

package matmul_test

// runAllocs is the number of allocations that a run may make.
const runAllocs = 0
