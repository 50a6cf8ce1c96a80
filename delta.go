package vram

// Sub is the difference between an earlier reading of the same device and this one. Counts and
// times are differences, and so are bytes by state, which may be negative. Peaks, the longest wait
// and the longest free range, limits, quotas, levels and the numbers of live buffers and of waiting
// requests are those of this reading. A stream, a tenant, a size or a function of the driver that
// only this reading lists counts from its beginning. Streams that have ended in between are part of
// the sums alone.
func (s Stats) Sub(before Stats) Stats {
	subtract(before.bytes(), s.bytes())
	subtract(before.counts(), s.counts())
	s.RequestCounts = subRequests(s.RequestCounts, before.RequestCounts)
	s.Waits.Count -= before.Waits.Count
	s.Waits.Deadlocks -= before.Waits.Deadlocks
	s.Waits.Durations = s.Waits.Durations.Sub(before.Waits.Durations)
	s.DriverTime -= before.DriverTime
	s.Sizes = subEach(s.Sizes, before.Sizes, func(n *SizeStats) int64 { return n.BlockBytes }, subSize)
	s.Driver = subEach(s.Driver, before.Driver, func(n *CallStats) string { return n.Func }, subCalls)
	s.Tenants = subEach(s.Tenants, before.Tenants, func(n *TenantStats) string { return n.Name }, subTenant)
	s.Streams = subEach(s.Streams, before.Streams, func(n *StreamStats) uint32 { return n.Stream }, subStream)
	return s
}

// bytes are the bytes by state.
func (s *Stats) bytes() []*int64 {
	return []*int64{
		&s.LiveBytes, &s.CachedBytes, &s.PendingBytes, &s.FreeBytes, &s.UnpassedBytes, &s.SetAsideBytes, &s.SleepingBytes, &s.ReservedBytes,
		&s.NeighbourBytes,
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
}

func subStream(n, before *StreamStats) {
	subtract(streamBytes(before), streamBytes(n))
	subtract(streamCounts(before), streamCounts(n))
	n.RequestCounts = subRequests(n.RequestCounts, before.RequestCounts)
	n.Sizes = subEach(n.Sizes, before.Sizes, func(z *SizeStats) int64 { return z.BlockBytes }, subSize)
}

func streamBytes(n *StreamStats) []*int64 {
	return []*int64{
		&n.LiveBytes, &n.PendingBytes, &n.CachedBytes, &n.SpanBytes, &n.MagazineBytes, &n.RangeBytes, &n.PageBytes, &n.HeldBytes, &n.LaneBytes,
	}
}

func streamCounts(n *StreamStats) []*uint64 {
	return []*uint64{
		&n.NodeVisits, &n.AllocCount, &n.FreeCount, &n.MagazineHits, &n.RangeHits, &n.PoolHits, &n.DriverMisses, &n.LostFences,
	}
}
