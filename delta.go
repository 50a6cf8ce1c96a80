package vram

import (
	"slices"
	"time"
)

// Sub is the difference between an earlier reading of the same device and this one; Delta says of a Stats
// that it is one. Its fields:
//
//   - Counts and times are those in between.
//   - Bytes by state, the longest free range and the number of free ranges are their change: negative where
//     there is less.
//   - The longest wait is that of the waits in between as far as it can be known: exact where it is the longest
//     of all, else the bound of its bucket in Durations; 0 without a wait.
//   - Peaks, limits, quotas, levels and the numbers of live buffers, lanes and waiting requests are those of
//     this reading.
//   - HitRate is that of the allocations in between, Efficiency that of the peaks. Fragmentation cannot be told
//     from changes: it is 0, and neither String nor the JSON has it.
//
// A stream, a tenant, a size or a function of the driver that only this reading lists counts from its
// beginning. Streams that have ended in between are part of the sums alone.
func (s Stats) Sub(before Stats) Stats {
	s.Delta = true
	subtract(before.bytes(), s.bytes())
	subtract(before.counts(), s.counts())
	s.RequestCounts = subRequests(s.RequestCounts, before.RequestCounts)
	s.Waits.Count -= before.Waits.Count
	s.Waits.Deadlocks -= before.Waits.Deadlocks
	s.Waits.Durations = s.Waits.Durations.Sub(before.Waits.Durations)
	s.Waits.Longest = longestSince(s.Waits.Durations, s.Waits.Longest, before.Waits.Longest)
	s.DriverTime -= before.DriverTime
	s.Sizes = subEach(s.Sizes, before.Sizes, func(n *SizeStats) int64 { return n.BlockBytes }, subSize)
	s.Driver = subEach(s.Driver, before.Driver, func(n *CallStats) string { return n.Func }, subCalls)
	s.Tenants = subEach(s.Tenants, before.Tenants, func(n *TenantStats) string { return n.Name }, subTenant)
	s.Streams = subEach(s.Streams, before.Streams, func(n *StreamStats) uint32 { return n.Stream }, subStream)
	return s
}

// longestSince is the longest of the durations that came after an earlier reading, or a bound of it: see Sub.
// longest and before are the longest of all durations until each reading.
func longestSince(since DurationHistogram, longest, before time.Duration) time.Duration {
	if longest > before {
		return longest
	}
	for i, n := range slices.Backward(since.Counts) {
		if n == 0 {
			continue
		}
		if bound := since.Bound(i); bound > 0 {
			return min(bound, longest)
		}
		return longest
	}
	return 0
}

// bytes are the bytes by state.
func (s *Stats) bytes() []*int64 {
	return []*int64{
		&s.LiveBytes, &s.CachedBytes, &s.PendingBytes, &s.FreeBytes, &s.UnpassedBytes, &s.SetAsideBytes, &s.SleepingBytes, &s.SharedBytes, &s.ReservedBytes,
		&s.NeighbourBytes, &s.LargestFreeBytes,
	}
}

// counts are the counts of the device.
func (s *Stats) counts() []*uint64 {
	return []*uint64{
		&s.AllocCount, &s.FreeCount, &s.MagazineHits, &s.StreamHits, &s.PoolHits, &s.DriverMisses, &s.LostFences, &s.ReclaimCount,
		&s.Predicted, &s.Mispredicted, &s.PressureRises, &s.Panics, &s.DriverCalls,
	}
}

// subtract takes figures from those at the same places.
func subtract[T int64 | uint64](figures, from []*T) {
	for i := range from {
		*from[i] -= *figures[i]
	}
}

// subEach takes from each entry the one of the same key, as far as there is one. It changes neither
// slice.
func subEach[T any, K comparable](all, before []T, key func(*T) K, sub func(n, before *T)) []T {
	earlier := make(map[K]*T, len(before))
	for i := range before {
		earlier[key(&before[i])] = &before[i]
	}
	rest := append([]T(nil), all...)
	for i := range rest {
		if b := earlier[key(&rest[i])]; b != nil {
			sub(&rest[i], b)
		}
	}
	return rest
}

func subRequests(n, before RequestCounts) RequestCounts {
	n.OutOfMemoryCount -= before.OutOfMemoryCount
	n.RefusedCount -= before.RefusedCount
	n.RetryCount -= before.RetryCount
	n.BadFreeCount -= before.BadFreeCount
	n.EndedWaitCount -= before.EndedWaitCount
	return n
}

func subSize(n, before *SizeStats) {
	n.AllocCount -= before.AllocCount
	n.FreeCount -= before.FreeCount
	n.LiveBytes -= before.LiveBytes
	n.CachedBytes -= before.CachedBytes
}

func subCalls(n, before *CallStats) {
	n.Calls -= before.Calls
	n.Failures -= before.Failures
	n.Time -= before.Time
}

func subTenant(n, before *TenantStats) {
	n.HeldBytes -= before.HeldBytes
	n.ChargedBytes -= before.ChargedBytes
	n.AllocCount -= before.AllocCount
	n.FreeCount -= before.FreeCount
	n.OutOfMemoryCount -= before.OutOfMemoryCount
	n.QuotaRefusedCount -= before.QuotaRefusedCount
	n.Durations = n.Durations.Sub(before.Durations)
	n.Longest = longestSince(n.Durations, n.Longest, before.Longest)
}

func subStream(n, before *StreamStats) {
	subtract(streamBytes(before), streamBytes(n))
	subtract(streamCounts(before), streamCounts(n))
	n.FreeRanges -= before.FreeRanges
	n.RequestCounts = subRequests(n.RequestCounts, before.RequestCounts)
	n.Sizes = subEach(n.Sizes, before.Sizes, func(z *SizeStats) int64 { return z.BlockBytes }, subSize)
}

func streamBytes(n *StreamStats) []*int64 {
	return []*int64{
		&n.LiveBytes, &n.PendingBytes, &n.CachedBytes, &n.SpanBytes, &n.MagazineBytes, &n.RangeBytes, &n.PageBytes, &n.HeldBytes, &n.LaneBytes,
		&n.LargestFreeBytes,
	}
}

func streamCounts(n *StreamStats) []*uint64 {
	return []*uint64{
		&n.NodeVisits, &n.AllocCount, &n.FreeCount, &n.MagazineHits, &n.RangeHits, &n.PoolHits, &n.DriverMisses, &n.LostFences,
	}
}
