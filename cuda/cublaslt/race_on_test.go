//go:build race && !gpu

package cublaslt_test

// runAllocs is the number of allocations that a product may make: a pool drops objects now and then under the race detector.
const runAllocs = 2
