package main

import "github.com/go-vram/vram"

// stats returns the sums of all devices' figures, and the longest wait and range. The streams are in the order of the stages.
func (t *training) stats() vram.Stats {
	sum := t.devices[0].Stats()
	if len(t.devices) == 1 {
		return sum
	}
	streams := make([]vram.StreamStats, len(t.stages))
	place := func(device int, of vram.Stats) {
		for i, s := range of.Streams {
			streams[i*len(t.devices)+device] = s
		}
	}
	place(0, sum)
	for i, d := range t.devices[1:] {
		s := d.Stats()
		place(i+1, s)
		for _, figure := range []struct {
			to    *int64
			bytes int64
		}{
			{&sum.LiveBytes, s.LiveBytes},
			{&sum.CachedBytes, s.CachedBytes},
			{&sum.FreeBytes, s.FreeBytes},
			{&sum.ReservedBytes, s.ReservedBytes},
			{&sum.LimitBytes, s.LimitBytes},
			{&sum.PeakLiveBytes, s.PeakLiveBytes},
			{&sum.PeakReservedBytes, s.PeakReservedBytes},
		} {
			*figure.to += figure.bytes
		}
		for _, figure := range []struct {
			to    *uint64
			count uint64
		}{
			{&sum.AllocCount, s.AllocCount},
			{&sum.FreeCount, s.FreeCount},
			{&sum.MagazineHits, s.MagazineHits},
			{&sum.StreamHits, s.StreamHits},
			{&sum.PoolHits, s.PoolHits},
			{&sum.DriverMisses, s.DriverMisses},
			{&sum.DriverCalls, s.DriverCalls},
			{&sum.Waits.Count, s.Waits.Count},
			{&sum.Waits.Deadlocks, s.Waits.Deadlocks},
		} {
			*figure.to += figure.count
		}
		sum.Waits.Waiting += s.Waits.Waiting
		sum.Waits.Longest = max(sum.Waits.Longest, s.Waits.Longest)
		sum.LargestFreeBytes = max(sum.LargestFreeBytes, s.LargestFreeBytes)
	}
	sum.Streams = streams
	return sum
}
