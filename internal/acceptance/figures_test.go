package acceptance_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/bits"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/meter"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// figures lists every figure of the statistics with the check that holds it: one of checks, which random programs run, or a test
// of a folder.
func figures() map[string]string {
	all := map[string]string{}
	for check, paths := range map[string]string{
		"settings": `Level Delta LimitBytes Tenants.Name Tenants.Quota.LimitBytes Tenants.Quota.ShareBytes Tenants.Quota.Exclusive Streams.Stream
			Sizes.BlockBytes Streams.Sizes.BlockBytes Driver.Func`,
		"callers": `LiveBytes AllocCount FreeCount Sizes.AllocCount Sizes.FreeCount Sizes.LiveCount Sizes.LiveBytes
			Streams.LiveBytes Streams.AllocCount Streams.FreeCount Streams.LiveCount
			Streams.Sizes.AllocCount Streams.Sizes.FreeCount Streams.Sizes.LiveCount Streams.Sizes.LiveBytes`,
		"tenants": `Tenants.HeldBytes Tenants.ChargedBytes Tenants.Queued Tenants.PeakHeldBytes Tenants.AllocCount Tenants.FreeCount
			Tenants.OutOfMemoryCount Tenants.QuotaRefusedCount Tenants.Longest Tenants.Durations.Counts Tenants.Durations.Sum`,
		"sources": `MagazineHits StreamHits PoolHits DriverMisses Streams.MagazineHits Streams.RangeHits Streams.PoolHits Streams.DriverMisses`,
		"attempts": `RequestCounts.OutOfMemoryCount RequestCounts.RefusedCount RequestCounts.RetryCount RequestCounts.BadFreeCount
			RequestCounts.EndedWaitCount Streams.RequestCounts.OutOfMemoryCount Streams.RequestCounts.RefusedCount Streams.RequestCounts.RetryCount
			Streams.RequestCounts.BadFreeCount Streams.RequestCounts.EndedWaitCount`,
		"waits": `Waits.Waiting Waits.DemandBytes Waits.Count Waits.Deadlocks Waits.Longest Waits.Durations.Counts Waits.Durations.Sum Streams.Waiting`,
		"map": `CachedBytes PendingBytes FreeBytes UnpassedBytes SetAsideBytes LargestFreeBytes Streams.PendingBytes Streams.CachedBytes Streams.SpanBytes
			Streams.MagazineBytes Streams.RangeBytes Streams.PageBytes Streams.HeldBytes Streams.FreeRanges Streams.LargestFreeBytes
			Sizes.CachedBytes Streams.Sizes.CachedBytes`,
		"peaks":  `PeakLiveBytes PeakPendingBytes Streams.PeakPendingBytes`,
		"driver": `ReservedBytes PeakReservedBytes DriverCalls DriverTime Driver.Calls Driver.Failures Driver.Time`,

		"internal/acceptance.TestFiguresOfRareEvents":                    `PeakFreeBytes Streams.PeakHeldBytes Streams.NodeVisits ReclaimCount Panics`,
		"internal/acceptance.TestLostFencesAreCounted":                   `LostFences Streams.LostFences`,
		"internal/acceptance.TestPressureIsSeenAtTicks":                  `Pressure PressureRises`,
		"internal/acceptance.TestNeighboursReleaseTogetherWhatIsMissing": `NeighbourBytes`,
		"streams.TestResetPeak":                                          `Streams.PeakLiveBytes`,
		"cuda/sleep.TestContentsComeBack":                                `SleepingBytes`,
		"cuda/share.TestSharedMemoryCountsInTheLimit":                    `SharedBytes`,
	} {
		for path := range strings.FieldsSeq(paths) {
			all[path] = check
		}
	}
	return all
}

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
	c.same("tenants", 1, len(s.Tenants))
	c.same("name", "guest", s.Tenants[0].Name)
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
		Name: n.Name, Quota: n.Quota, HeldBytes: sumBlocks(own.live), ChargedBytes: sumBlocks(own.live) + own.chargedBytes, Queued: own.queued,
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
	c.same("DriverTime", []time.Duration{spent, a.h.gpu.ModelledTime() - a.ownTime - time.Duration(a.looks)*a.lookTime}, []time.Duration{s.DriverTime, s.DriverTime})
}

// look compares the statistics with the account, check by check.
func (a *account) look(t *testing.T) {
	t.Helper()
	synctest.Wait()
	for _, s := range a.open {
		s.peakPending = max(s.peakPending, s.pendingBytes)
	}
	a.peakPending = max(a.peakPending, a.pendingBytes())
	a.peakReserved.Raise(a.usedBytes())
	s := a.h.Stats()
	a.peakRead = max(a.peakRead, s.LiveBytes)
	m, err := a.h.MemoryMap(context.Background(), 512)
	require.NoError(t, err)
	a.m = m
	c := &comparison{}
	for _, name := range slices.Sorted(maps.Keys(checks())) {
		checks()[name](a, &s, c)
	}
	require.Empty(t, c.wrong, "after step %d: %v", len(a.played), a.played[max(0, len(a.played)-8):])
	a.last = s
	leaves(reflect.ValueOf(&s).Elem(), "", func(path string, v reflect.Value) { a.seen[path] = a.seen[path] || !v.IsZero() })
}

func (a *account) pendingBytes() (sum int64) {
	for _, s := range a.open {
		sum += s.pendingBytes
	}
	return sum
}

// leaves calls f for each figure of a value: its path, and the value itself, where it can be set.
func leaves(v reflect.Value, path string, f func(path string, v reflect.Value)) {
	switch {
	case v.Kind() == reflect.Struct:
		for field, x := range v.Fields() {
			if field.IsExported() {
				leaves(x, strings.TrimPrefix(path+"."+field.Name, "."), f)
			}
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			leaves(v.Index(i), path, f)
		}
	default:
		f(path, v)
	}
}

// everyFigure returns the paths of all figures of the statistics.
func everyFigure() []string {
	var s vram.Stats
	s.Sizes, s.Tenants = make([]streams.SizeStats, 1), make([]vram.TenantStats, 1)
	s.Driver, s.Streams = make([]meter.CallStats, 1), make([]vram.StreamStats, 1)
	s.Streams[0].Sizes = make([]streams.SizeStats, 1)
	s.Waits.Durations.Counts, s.Tenants[0].Durations.Counts = make([]uint64, 1), make([]uint64, 1)
	var all []string
	leaves(reflect.ValueOf(&s).Elem(), "", func(path string, _ reflect.Value) { all = append(all, path) })
	return all
}

// plusOne changes a figure by one.
func plusOne(v reflect.Value, by int64) {
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	case v.CanInt():
		v.SetInt(v.Int() + by)
	default:
		v.SetUint(v.Uint() + uint64(by)) //nolint:gosec // it may wrap around
	}
}

// offByOne changes each figure of the last reading by one, and requires that the check in the list finds it.
func (a *account) offByOne(t *testing.T, list map[string]string) {
	t.Helper()
	leaves(reflect.ValueOf(&a.last).Elem(), "", func(path string, v reflect.Value) {
		check := checks()[list[path]]
		if check == nil || path == "PeakLiveBytes" && a.level != vram.StatsExact { // which is sampled
			return
		}
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		for _, by := range []int64{1, -1} {
			plusOne(v, by)
			c := &comparison{}
			check(a, &a.last, c)
			v.Set(was)
			assert.NotEmpty(t, c.wrong, "%s does not find %s %+d", list[path], path, by)
		}
	})
}

// The list names a check for each figure, and no other figure; tests in it exist and name their figures.
func TestTheListOfFiguresIsWhole(t *testing.T) {
	t.Parallel()
	list := figures()
	assert.ElementsMatch(t, everyFigure(), slices.Collect(maps.Keys(list)))
	for path, check := range list {
		if checks()[check] != nil {
			continue
		}
		at := strings.LastIndex(check, ".")
		require.Positive(t, at, "%s: no check %s", path, check)
		name := path[strings.LastIndex(path, ".")+1:]
		assert.Contains(t, testBody(t, check[:at], check[at+1:]), name, "%s does not name %s", check, path)
	}
}

// testBody returns the source of a test of a folder, "" if it does not exist.
func testBody(t *testing.T, folder, name string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
				var names []string
				ast.Inspect(f.Body, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						names = append(names, id.Name)
					}
					return true
				})
				return strings.Join(names, " ")
			}
		}
	}
	return ""
}

// In random programs each figure is as the account has it, and the check that the list names finds a figure that is off by one.
func TestFiguresOfRandomPrograms(t *testing.T) {
	t.Parallel()
	list, seen := figures(), map[string]bool{}
	seeds := 8
	if testing.Short() {
		seeds = 4
	}
	for seed := range uint64(seeds) { //nolint:gosec // small
		level := []vram.StatsLevel{vram.StatsExact, vram.StatsOn}[seed%2]
		synctest.Test(t, func(t *testing.T) {
			a := newAccount(t, seed, level)
			check := func() { a.look(t) }
			for n := range 200 {
				a.step(t, check)
				check()
				if n%50 == 0 {
					a.offByOne(t, list)
				}
				if t.Failed() {
					t.Fatalf("seed %d, step %d", seed, n)
				}
			}
			a.empty(t)
			check()
			require.NoError(t, a.h.Close())
			for path, is := range a.seen {
				seen[path] = seen[path] || is
			}
		})
	}
	for path, check := range list {
		if checks()[check] != nil && path != "Delta" && path != "Tenants.Quota.Exclusive" {
			assert.True(t, seen[path], "%s was always 0", path)
		}
	}
}

// Figures of events that random programs do not have, and peaks of moments that they do not see.
func TestFiguresOfRareEvents(t *testing.T) {
	t.Parallel()
	h := openHouse(t, vram.Config{LimitBytes: 96 * mib, OnOutOfMemory: func(*vram.OutOfMemoryError) bool {
		panic(recoveredtest.Planted("in OnOutOfMemory"))
	}}, sim.Config{})
	s, other := h.stream(), h.stream()
	freeAll(t, must(t, s, 64*mib))
	freeAll(t, must(t, other, 64*mib))
	n := h.addsUp()
	assert.Equal(t, uint64(2), n.ReclaimCount, "the second needs memory of the first")
	assert.Equal(t, 64*mib, n.Streams[0].PeakHeldBytes)
	assert.Equal(t, 64*mib, n.Streams[1].PeakHeldBytes)
	_, err := s.Alloc(96*mib + 1)
	require.ErrorIs(t, err, vram.ErrTooLarge)
	assert.Zero(t, h.Stats().Panics)
	held := must(t, s, 40*mib)
	_, err = other.Alloc(90 * mib)
	require.Error(t, err)
	assert.Equal(t, uint64(1), h.Stats().Panics)
	freeAll(t, held)

	h.trim()
	h.ResetPeaks()
	require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: 16 * mib, Count: 1}))
	x := must(t, s, 16*mib)
	n = h.addsUp()
	assert.Equal(t, [...]int64{0, 16 * mib}, [...]int64{n.FreeBytes, n.PeakFreeBytes})
	before := n.Streams[1].NodeVisits
	y := must(t, other, 4*mib) // its page has no room
	assert.Equal(t, before+1, h.Stats().Streams[1].NodeVisits)
	freeAll(t, y, must(t, other, 3*mib)) // its one range
	assert.Equal(t, before+2, h.Stats().Streams[1].NodeVisits)
	freeAll(t, x)
}

// A fence that a capture takes counts once, for its stream and for the device.
func TestLostFencesAreCounted(t *testing.T) {
	t.Parallel()
	h := openHouse(t, vram.Config{LimitBytes: 32 * mib}, sim.Config{})
	s, other := h.stream(), h.stream()
	b := must(t, s, 24*mib)
	end := h.captureAtRecord(s)
	freeAll(t, b)
	require.NoError(t, s.Trim(t.Context()))
	h.trim()
	_, err := other.Alloc(16 * mib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	end()
	require.NoError(t, s.Trim(t.Context()))
	freeAll(t, must(t, other, 32*mib))
	n := h.addsUp()
	assert.Equal(t, [...]uint64{1, 1, 0}, [...]uint64{n.LostFences, n.Streams[0].LostFences, n.Streams[1].LostFences})
}

// The exact peak of live bytes has neither pending memory, nor memory that another stream was given back before its last turn, nor the
// block that a request found which waits for its quota.
func TestTheExactPeakHasOnlyWhatLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 256 * mib, Stats: vram.StatsExact}, sim.Config{})
		s, other := h.stream(), h.stream()
		b := must(t, s, 16*mib)
		require.NoError(t, h.gpu.Launch(other.Handle(), time.Hour))
		require.NoError(t, b.RecordStream(other))
		freeAll(t, b)
		require.Equal(t, 16*mib, h.Stats().PendingBytes)
		freeAll(t, must(t, s, 4*mib))
		h.Stats() // a turn of each stream
		freeAll(t, must(t, other, 8*mib))
		n := h.Stats()
		assert.Equal(t, 16*mib, n.PeakLiveBytes)
		assert.Equal(t, 16*mib, n.Streams[0].PeakLiveBytes)
		h.gpu.Advance(time.Hour)

		guest := h.tenant("guest", vram.Quota{LimitBytes: 24 * mib})
		hog, err := s.AllocFor(t.Context(), vram.Request{Bytes: 20 * mib, Tenant: guest})
		require.NoError(t, err)
		freeAll(t, must(t, s, 12*mib)) // the stream keeps memory that the next request may find
		h.ResetPeaks()
		answer := waitFor(s, vram.Request{Bytes: 8 * mib, Tenant: guest})
		synctest.Wait()
		assert.Equal(t, 20*mib, h.Stats().PeakLiveBytes)
		freeAll(t, hog)
		freeAll(t, got(t, answer))
	})
}
