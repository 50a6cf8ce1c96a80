//go:build race

package kernel_test

// runAllocs is what a run may allocate: a pool drops what it is given now and then under the race detector.
const runAllocs = 3
