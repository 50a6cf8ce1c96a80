//go:build !race

package kernel_test

// runAllocs is what a run may allocate.
const runAllocs = 0
