package vram

import (
	"fmt"

	"github.com/go-vram/vram/internal/units"
)

// String has both figures.
func (e GrowthEvent) String() string {
	return fmt.Sprintf("grew by %s to %s", units.Bytes(e.Bytes), units.Bytes(e.ReservedBytes))
}

// String has both figures.
func (e WarmEvent) String() string {
	return fmt.Sprintf("warmed %s of %s", units.Bytes(e.MappedBytes), units.Bytes(e.WantedBytes))
}

// String has both figures.
func (e TrimEvent) String() string {
	return fmt.Sprintf("trimmed by %s to %s", units.Bytes(e.Bytes), units.Bytes(e.ReservedBytes))
}

// String has the levels and the figures.
func (e PressureEvent) String() string {
	return fmt.Sprintf("pressure %v after %v, %s of %s in use", e.Level, e.Before, units.Bytes(e.UsedBytes), units.Bytes(e.LimitBytes))
}

// String has the place and the value, without the stack.
func (e PanicEvent) String() string { return fmt.Sprintf("panic in %s: %v", e.Place, e.Value) }

// String has the stream, or the pool, and the cause.
func (e QuarantineEvent) String() string {
	if e.Stream == 0 {
		return fmt.Sprintf("the pool is quarantined: %v", e.Err)
	}
	return fmt.Sprintf("stream %d is quarantined: %v", e.Stream, e.Err)
}

// String has the number of records and the sampling rate.
func (p Profile) String() string {
	var inUse ProfileTotals
	for i := range p.Records {
		inUse.Count += p.Records[i].InUse.Count
		inUse.Bytes += p.Records[i].InUse.Bytes
	}
	return fmt.Sprintf("%s, a sample each %s; in use %s with %s", units.Count(len(p.Records), "place"), units.Bytes(p.SampleBytes),
		units.Count(inUse.Count, "buffer"), units.Bytes(inUse.Bytes))
}
