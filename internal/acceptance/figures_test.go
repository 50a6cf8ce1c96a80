package acceptance_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
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
	"github.com/go-vram/vram/streams"
)

// figures lists every figure of the statistics with the check that holds it: one of checks, which random programs run, or a test
// of a folder.
func figures() map[string]string {
	all := map[string]string{}
	for check, paths := range map[string]string{
		"settings": `Level Delta LimitBytes LimitSource Tenants.Name Tenants.ID Tenants.Quota.LimitBytes Tenants.Quota.ShareBytes Tenants.Quota.Exclusive Streams.Stream
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
		if checks()[check] != nil && path != "Delta" && path != "LimitSource" && path != "Tenants.Quota.Exclusive" {
			assert.True(t, seen[path], "%s was always 0", path)
		}
	}
}

// Figures of events that random programs do not have, and peaks of moments that they do not see.
func TestFiguresOfRareEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 96 * mib, OnOutOfMemory: func(*vram.OutOfMemoryError) bool {
			panic(recoveredtest.Planted("in OnOutOfMemory"))
		}}, sim.Config{})
		s, other := h.stream(), h.stream()
		freeAll(t, must(t, s, 64*mib))
		synctest.Wait() // the pool asks a stream again that is at work
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
	})
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
