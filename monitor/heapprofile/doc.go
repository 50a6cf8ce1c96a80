// Package heapprofile writes the memory of devices as a profile that pprof reads: which code has allocated it,
// and which code holds it.
//
//	go tool pprof -http=: http://localhost:8080/debug/vram/heap
//
// Package handler, below, serves it. Config.SampleBytes switches the samples on.
//
// # Words
//
// A profile has the four sample types of Go's own heap profile, in their order: alloc_objects and
// alloc_space for all buffers since vram.Open, inuse_objects and inuse_space for live ones. Values are scaled to
// all buffers, not only the sampled ones; bytes are requested bytes. The stack begins with the program's call into
// vram. Each sample has the labels device and stream, and tag and tenant if the request had them: pprof -tagfocus
// and -tagleaf select and show them.
//
// # Concurrency properties
//
// All functions may be called from any goroutine. They take no lock and no turn, and stop no allocation.
package heapprofile
