package vram

import "github.com/go-vram/vram/streams"

// Handover carries values from the goroutine of one stream to that of another, as a channel does, and tells the allocator who waits for
// whom: see streams.Handover.
type Handover[T any] = streams.Handover[T]

// NewHandover makes one with room for capacity values, at least one. A nil stream stands for goroutines that have none: they are
// taken to go on.
func NewHandover[T any](from, to *Stream, capacity int) *Handover[T] {
	return streams.NewHandover[T](from, to, capacity)
}
