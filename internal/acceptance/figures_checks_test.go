package acceptance_test

import (
	"fmt"
	"maps"
	"math/bits"
	"reflect"
	"slices"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// comparison collects differences between statistics and an account.
type comparison struct{ wrong []string }

func (c *comparison) same(what string, want, got any) {
	if !reflect.DeepEqual(want, got) {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: %v, want %v", what, got, want))
	}
}

// checks compare statistics with an account, each some figures.
func checks() map[string]func(a *account, s *vram.Stats, c *comparison) {
	return map[string]func(a *account, s *vram.Stats, c *comparison){
		"settings": checkSettings, "callers": checkCallers, "tenants": checkTenants, "sources": checkSources, "attempts": checkAttempts,
		"waits": checkWaits, "map": checkMap, "peaks": checkPeaks, "driver": checkDriver,
	}
}

func checkSettings(a *account, s *vram.Stats, c *comparison) {
	c.same("Level", a.level, s.Level)
	c.same("Delta", false, s.Delta)
	c.same("LimitBytes", a.limit, s.LimitBytes)
	c.same("LimitSource", "", s.LimitSource)
	c.same("tenants", 1, len(s.Tenants))
	c.same("name", "guest", s.Tenants[0].Name)
	c.same("ID", a.guest.Stats().ID, s.Tenants[0].ID)
	c.same("quota", a.quota, s.Tenants[0].Quota)
	for i, stream := range a.open {
		c.same("stream", stream.ID(), s.Streams[i].Stream)
		c.same("sizes of a stream", slices.Sorted(maps.Keys(stream.sizes)), blockBytes(s.Streams[i].Sizes))
	}
	c.same("sizes", slices.Sorted(maps.Keys(a.sizes())), blockBytes(s.Sizes))
	for _, d := range s.Driver {
		c.same("calls of "+d.Func, true, a.h.faults.Calls(d.Func) > 0)
	}
}

func blockBytes(all []streams.SizeStats) (of []int64) {
	for _, z := range all {
		of = append(of, z.BlockBytes)
	}
	return of
}

// sizes returns the counts of all streams by size.
func (a *account) sizes() map[int64]streams.SizeStats {
	all := map[int64]streams.SizeStats{}
	for _, s := range append(slices.Clone(a.open), a.gone...) {
		for of, z := range s.sizes {
			sum := all[of]
			all[of] = streams.SizeStats{
				BlockBytes: of, AllocCount: sum.AllocCount + z.AllocCount, FreeCount: sum.FreeCount + z.FreeCount,
				LiveCount: sum.LiveCount + z.LiveCount, LiveBytes: sum.LiveBytes + z.LiveBytes,
			}
		}
	}
	return all
}

// sumSizes returns the sum of counts by size.
func sumSizes[Z streams.SizeStats | *streams.SizeStats](all map[int64]Z) (sum streams.SizeStats) {
	for _, x := range all {
		var z streams.SizeStats
		switch x := any(x).(type) {
		case streams.SizeStats:
			z = x
		case *streams.SizeStats:
			z = *x
		}
		sum.AllocCount += z.AllocCount
		sum.FreeCount += z.FreeCount
		sum.LiveCount += z.LiveCount
		sum.LiveBytes += z.LiveBytes
	}
	return sum
}

// uncached returns counts by size without the cached bytes.
func uncached(all []streams.SizeStats) map[int64]streams.SizeStats {
	of := map[int64]streams.SizeStats{}
	for _, z := range all {
		z.CachedBytes = 0
		of[z.BlockBytes] = z
	}
	return of
}

func checkCallers(a *account, s *vram.Stats, c *comparison) {
	sum := sumSizes(a.sizes())
	c.same("counts", []uint64{sum.AllocCount, sum.FreeCount}, []uint64{s.AllocCount, s.FreeCount})
	c.same("LiveBytes", sum.LiveBytes, s.LiveBytes)
	c.same("sizes", a.sizes(), uncached(s.Sizes))
	for i, stream := range a.open {
		n, sum := s.Streams[i], sumSizes(stream.sizes)
		c.same("counts of a stream", []uint64{sum.AllocCount, sum.FreeCount, sum.LiveCount}, []uint64{n.AllocCount, n.FreeCount, n.LiveCount})
		c.same("live bytes of a stream", sumBlocks(stream.live), n.LiveBytes)
		sizes := map[int64]streams.SizeStats{}
		for of, z := range stream.sizes {
			sizes[of] = *z
		}
		c.same("sizes of a stream", sizes, uncached(n.Sizes))
	}
}

func checkTenants(a *account, s *vram.Stats, c *comparison) {
	n, own := s.Tenants[0], &a.owned
	c.same("guest", pool.TenantStats{
		Name: n.Name, ID: n.ID, Quota: n.Quota, HeldBytes: sumBlocks(own.live), ChargedBytes: sumBlocks(own.live) + own.chargedBytes, Queued: own.queued,
		PeakHeldBytes: own.peakHeld, AllocCount: own.allocs, FreeCount: own.frees, OutOfMemoryCount: own.outOfMemory, QuotaRefusedCount: own.overQuota,
		Longest: own.longest, Durations: histogramOf(own.durations),
	}, n)
}

// histogramOf counts durations in buckets.
func histogramOf(all []time.Duration) (h pool.DurationHistogram) {
	for _, d := range all {
		if h.Counts == nil {
			h.Counts = make([]uint64, pool.DurationBuckets)
		}
		h.Counts[min(bits.Len64(uint64(d/time.Microsecond)), pool.DurationBuckets-1)]++ //nolint:gosec // not negative
		h.Sum += d
	}
	return h
}

func checkSources(a *account, s *vram.Stats, c *comparison) {
	c.same("sum of the sources", s.AllocCount, s.MagazineHits+s.StreamHits+s.PoolHits+s.DriverMisses)
	sum := a.goneStats
	for i, stream := range a.open {
		n := s.Streams[i]
		c.same("sum of the sources of a stream", n.AllocCount, n.MagazineHits+n.RangeHits+n.PoolHits)
		c.same("misses of a stream", stream.misses, n.DriverMisses)
		if !stream.fromBatches {
			c.same("pool hits of a stream", stream.misses+stream.pooled, n.PoolHits)
		}
		sum.MagazineHits += n.MagazineHits
		sum.RangeHits += n.RangeHits
		sum.PoolHits += n.PoolHits
		sum.DriverMisses += n.DriverMisses
	}
	c.same("sources", []uint64{sum.MagazineHits, sum.RangeHits, sum.PoolHits - sum.DriverMisses, sum.DriverMisses},
		[]uint64{s.MagazineHits, s.StreamHits, s.PoolHits, s.DriverMisses})
}

func checkAttempts(a *account, s *vram.Stats, c *comparison) {
	sum := a.tries
	for _, stream := range append(slices.Clone(a.open), a.gone...) {
		t := stream.tries
		sum.OutOfMemoryCount += t.OutOfMemoryCount
		sum.RefusedCount += t.RefusedCount
		sum.RetryCount += t.RetryCount
		sum.BadFreeCount += t.BadFreeCount
		sum.EndedWaitCount += t.EndedWaitCount
	}
	c.same("attempts", sum, s.RequestCounts)
	for i, stream := range a.open {
		c.same("attempts of a stream", stream.tries, s.Streams[i].RequestCounts)
	}
}

func checkWaits(a *account, s *vram.Stats, c *comparison) {
	w := &a.waits
	c.same("waits", pool.WaitStats{
		Waiting: w.waiting, DemandBytes: w.demandBytes, Count: w.count, Deadlocks: w.deadlocks, Longest: w.longest, Durations: histogramOf(w.durations),
	}, s.Waits)
	for i, stream := range a.open {
		c.same("requests of a stream that wait", stream.waiting, s.Streams[i].Waiting)
	}
}

func checkMap(a *account, s *vram.Stats, c *comparison) {
	anyStream := func(uint32) bool { return true }
	free := runs(a.m, vram.MemoryFree, anyStream)
	largest := longest(free)
	var cached, pending, blocks int64
	for i, stream := range a.open {
		n, states := s.Streams[i], statesOf(a.m, stream.ID())
		ranges := runs(a.m, vram.MemoryCachedRange, func(of uint32) bool { return of == stream.ID() })
		c.same("pending bytes of a stream", []int64{states.PendingBytes, stream.pendingBytes}, []int64{n.PendingBytes, n.PendingBytes})
		c.same("cached bytes of a stream", states.CachedBlockBytes+states.CachedRangeBytes, n.CachedBytes)
		c.same("blocks of a stream", states.CachedBlockBytes, n.SpanBytes+n.MagazineBytes)
		c.same("ranges of a stream", states.CachedRangeBytes, n.RangeBytes)
		c.same("held bytes of a stream", states.LiveBytes+states.PendingBytes+states.CachedBlockBytes+states.CachedRangeBytes, n.HeldBytes)
		c.same("free ranges of a stream", len(ranges), n.FreeRanges)
		c.same("largest free range of a stream", longest(ranges), n.LargestFreeBytes)
		c.same("whole pages of a stream", wholePages(ranges, a.m.PageBytes), n.PageBytes)
		c.same("cached bytes of a stream by size", n.SpanBytes+n.MagazineBytes, cachedBytes(n.Sizes))
		largest = max(largest, longest(ranges))
		cached += n.CachedBytes
		pending += n.PendingBytes
		blocks += cachedBytes(n.Sizes)
	}
	c.same("cached", cached, s.CachedBytes)
	c.same("pending", pending, s.PendingBytes)
	c.same("cached by size", blocks, cachedBytes(s.Sizes))
	c.same("free", a.m.Total.FreeBytes, s.FreeBytes)
	c.same("unpassed", a.m.Total.UnpassedBytes, s.UnpassedBytes)
	c.same("set aside", []int64{a.m.Total.SetAsideBytes, a.set}, []int64{s.SetAsideBytes, s.SetAsideBytes})
	c.same("largest free range", largest, s.LargestFreeBytes)
}

func cachedBytes(all []streams.SizeStats) (sum int64) {
	for _, z := range all {
		sum += z.CachedBytes
	}
	return sum
}

// wholePages returns the bytes of pages that lie in one run each.
func wholePages(all [][2]int64, pageBytes int64) (sum int64) {
	for _, r := range all {
		sum += max(0, r[1]/pageBytes-(r[0]+pageBytes-1)/pageBytes) * pageBytes
	}
	return sum
}

func checkPeaks(a *account, s *vram.Stats, c *comparison) {
	if a.level == vram.StatsExact {
		c.same("PeakLiveBytes", a.peakLive, s.PeakLiveBytes)
	} else {
		c.same("bounds of PeakLiveBytes", []bool{true, true}, []bool{s.PeakLiveBytes >= a.peakRead, s.PeakLiveBytes <= s.PeakReservedBytes})
	}
	c.same("PeakPendingBytes", a.peakPending, s.PeakPendingBytes)
	for i, stream := range a.open {
		c.same("peak of pending bytes of a stream", stream.peakPending, s.Streams[i].PeakPendingBytes)
	}
}

func checkDriver(a *account, s *vram.Stats, c *comparison) {
	usedBytes := a.usedBytes()
	c.same("ReservedBytes", usedBytes, s.ReservedBytes)
	c.same("PeakReservedBytes", a.peakReserved.Peak(), s.PeakReservedBytes)
	var calls uint64
	var spent time.Duration
	for _, d := range s.Driver {
		c.same("calls of "+d.Func, a.h.faults.Calls(d.Func), d.Calls)
		c.same("failures of "+d.Func, a.injected[d.Func], d.Failures)
		calls += d.Calls
		spent += d.Time
	}
	c.same("DriverCalls", calls, s.DriverCalls)
	others := a.ownTime + time.Duration(a.looks)*a.lookTime
	c.same("DriverTime", []time.Duration{spent, a.h.gpu.ModelledTime() - others}, []time.Duration{s.DriverTime, s.DriverTime})
}
