//go:build !race && !gpu

package cublaslt_test

// runAllocs is the number of allocations that a product may make.
const runAllocs = 0
