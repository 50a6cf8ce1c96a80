package vram

import "github.com/go-vram/vram/streams"

// Handover carries values from the goroutine of one stream to that of another, as a channel does.
// It reports to the allocator which stream waits for which, so that requests with Wait that can
// never be served are refused as a deadlock instead of waiting: see streams.Handover.
type Handover[T any] = streams.Handover[T]

// NewHandover makes a Handover with room for capacity values, at least one. A nil stream stands for
// goroutines without a stream, which count as making progress.
func NewHandover[T any](from, to *Stream, capacity int) *Handover[T] {
	return streams.NewHandover[T](from, to, capacity)
}
