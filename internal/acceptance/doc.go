// Package acceptance tests vram as its callers use it: through the exported names of the root package, on the simulated device,
// with faults at driver calls, many goroutines, and the examples of the pages in docs. It exports nothing.
package acceptance
