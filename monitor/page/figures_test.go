package page

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// numbered gives each number of a value another value, also in the structures in it, and returns the next one.
func numbered(v reflect.Value, next int64) int64 {
	for _, f := range v.Fields() {
		switch {
		case f.CanInt():
			f.SetInt(next)
		case f.CanUint() && f.Kind() != reflect.Uint8:
			f.SetUint(uint64(next)) //nolint:gosec // small
		case f.Kind() == reflect.Struct:
			next = numbered(f, next)
			continue
		}
		next++
	}
	return next
}

// same compares the fields of a value of the page with the fields of the same name that the statistics have.
func same(t *testing.T, shown, of any, none ...string) {
	t.Helper()
	v, from := reflect.ValueOf(shown), reflect.ValueOf(of)
	for at, f := range v.Fields() {
		source := from.FieldByName(at.Name)
		if !source.IsValid() || !f.CanInt() && !f.CanUint() {
			assert.Contains(t, none, at.Name, "the statistics have no such number, and the test does not name it")
			continue
		}
		assert.EqualValues(t, source.Interface(), f.Interface(), at.Name)
		assert.NotZero(t, f.Interface(), at.Name)
	}
}

// Each figure of the statistics is shown under its own name.
func TestFiguresAreOfTheStatistics(t *testing.T) {
	t.Parallel()
	s := vram.Stats{Streams: make([]vram.StreamStats, 2), Tenants: make([]vram.TenantStats, 2)}
	next := numbered(reflect.ValueOf(&s).Elem(), 1000)
	for i := range s.Streams {
		next = numbered(reflect.ValueOf(&s.Streams[i]).Elem(), next)
		next = numbered(reflect.ValueOf(&s.Tenants[i]).Elem(), next)
	}
	s.Streams[0].Stream, s.Streams[1].Stream = 9, 4
	s.Tenants[0].Name, s.Tenants[1].Name = "model", "guest"
	s.Pressure = vram.PressureHigh
	var d Device
	d.show(&s)
	same(t, d.Figures, s, "Waiting", "WaitDemandBytes", "DeadlockCount")
	assert.Equal(t, [...]any{s.Waits.Waiting, s.Waits.DemandBytes, s.Waits.Deadlocks},
		[...]any{d.Figures.Waiting, d.Figures.WaitDemandBytes, d.Figures.DeadlockCount})
	same(t, d, s, "Index", "State", "Name", "TotalBytes", "Figures", "HitRate", "Fragmentation", "Efficiency", "Pressure", "Driver", "DriverSeconds",
		"WaitCount", "LongestWaitSeconds", "Waiters", "Streams", "Tenants", "ProcessesKnown", "ProcessCount", "Processes")
	assert.Equal(t, [...]any{s.HitRate(), s.Fragmentation(), s.Efficiency(), "high", s.DriverTime.Seconds(), s.Waits.Count, s.Waits.Longest.Seconds()},
		[...]any{d.HitRate, d.Fragmentation, d.Efficiency, d.Pressure, d.DriverSeconds, d.WaitCount, d.LongestWaitSeconds})

	require.Len(t, d.Streams, 2)
	for i, x := range d.Streams {
		from := s.Streams[1-i] // in the order of their numbers
		same(t, x, from, "HitRate", "Fragmentation")
		assert.InDelta(t, float64(from.MagazineHits+from.RangeHits)/float64(from.AllocCount), x.HitRate, 0)
		assert.InDelta(t, from.Fragmentation(), x.Fragmentation, 0)
	}
	assert.InDelta(t, 1, streamOf(&vram.StreamStats{}).HitRate, 0, "of no allocation")
	assert.Zero(t, streamOf(&vram.StreamStats{AllocCount: 1}).HitRate)
	require.Len(t, d.Tenants, 2)
	for i, x := range d.Tenants {
		from := s.Tenants[i]
		assert.Equal(t, Tenant{
			Name: from.Name, HeldBytes: from.HeldBytes, ChargedBytes: from.ChargedBytes, LimitBytes: from.Quota.LimitBytes,
			ShareBytes: from.Quota.ShareBytes, WaitingForQuota: from.Queued,
		}, x)
	}
}

// The list of requests is read where one waits: for memory, for a quota, or in its stream.
func TestWaitersAreReadWhereOneWaits(t *testing.T) {
	t.Parallel()
	assert.False(t, requestsWait(&vram.Stats{Streams: make([]vram.StreamStats, 2), Tenants: make([]vram.TenantStats, 2)}))
	memory, quota, inStream := vram.Stats{}, vram.Stats{Tenants: make([]vram.TenantStats, 2)}, vram.Stats{Streams: make([]vram.StreamStats, 2)}
	memory.Waits.Waiting, quota.Tenants[1].Queued, inStream.Streams[1].Waiting = 1, 1, 1
	for _, s := range []vram.Stats{memory, quota, inStream} {
		assert.True(t, requestsWait(&s))
	}
}

// The lists of waiting requests and of holders are bounded, and their counts are of all.
func TestListsOfWaitersAreBounded(t *testing.T) {
	t.Parallel()
	var w vram.Waiters
	for i := range 60 {
		w.Requests = append(w.Requests, streams.WaitingRequest{
			Position: i + 1, Bytes: 100, Count: 2, Stream: uint32(i), Tag: "kv", Tenant: "model", Priority: 5, For: streams.WaitForMemory, //nolint:gosec // small
			Waited: 3 * time.Second, Left: 7 * time.Second, HasDeadline: i == 1,
		})
		w.Holders = append(w.Holders, pool.Holder{Stream: uint32(i), HeldBytes: 900, WaitingBytes: 100, Suspended: true}) //nolint:gosec // small
	}
	w.Unread = []uint32{77}
	w.Requests[58].For = streams.WaitForQuota
	d := Device{Tenants: []Tenant{{Name: "model"}, {Name: "other"}}}
	d.listWaiters(&w)
	assert.Equal(t, [2]int{59, 0}, [2]int{d.Tenants[0].WaitingForMemory, d.Tenants[1].WaitingForMemory})
	out := d.Waiters
	assert.Equal(t, [...]int{60, 50, 60, 10}, [...]int{out.RequestCount, len(out.Requests), out.HolderCount, len(out.Holders)})
	assert.Equal(t, []uint32{77}, out.Unread)
	want := WaitingRequest{
		Position: 1, Bytes: 100, BufferCount: 2, Tag: "kv", Tenant: "model", Priority: 5, For: streams.WaitForMemory.String(), WaitedSeconds: 3,
	}
	assert.Equal(t, want, out.Requests[0], "without a deadline no time is left")
	want.Position, want.Stream, want.HasDeadline, want.LeftSeconds = 2, 1, true, 7
	assert.Equal(t, want, out.Requests[1])
	assert.Equal(t, Holder{Stream: 9, HeldBytes: 900, WaitingBytes: 100, Suspended: true}, out.Holders[9])
	assert.True(t, out.Stalled, "each holder is suspended")
	w.Holders[59].Suspended, w.Holders[59].WaitingBytes = false, 0
	assert.False(t, waitersOf(&w).Stalled)
	w.Holders = nil
	assert.False(t, waitersOf(&w).Stalled)
	assert.False(t, waitersOf(&vram.Waiters{Holders: []pool.Holder{{Suspended: true}}}).Stalled)
}

// The bytes of a range are in the sum of its state, and those of a mixed one in the sums that it has.
func TestSumsAreByState(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		r    vram.MemoryRange
		want Sums
	}{
		{vram.MemoryRange{State: vram.MemoryLive}, Sums{LiveBytes: 7}},
		{vram.MemoryRange{State: vram.MemoryPending}, Sums{PendingBytes: 7}},
		{vram.MemoryRange{State: vram.MemoryCachedBlock}, Sums{CachedBlockBytes: 7}},
		{vram.MemoryRange{State: vram.MemoryCachedRange}, Sums{CachedRangeBytes: 7}},
		{vram.MemoryRange{State: vram.MemoryFree}, Sums{FreeBytes: 7}},
		{vram.MemoryRange{State: vram.MemoryFree, Stream: 1}, Sums{FreeBytes: 7, UnpassedBytes: 7}},
		{vram.MemoryRange{State: vram.MemorySetAside}, Sums{SetAsideBytes: 7}},
		{vram.MemoryRange{State: vram.MemoryBusy}, Sums{BusyBytes: 7}},
		{vram.MemoryRange{State: vram.MemoryLent, Stream: 1}, Sums{LentBytes: 7}},
		{vram.MemoryRange{State: vram.MemoryLive, Stream: 1, Asleep: true}, Sums{LiveBytes: 7, SleepingBytes: 7}},
	} {
		c.r.Bytes = 7
		var s, twice Sums
		s.add(&c.r)
		assert.Equal(t, c.want, s, "%v", c.r)
		var mixed vram.MemoryBytes
		numbered(reflect.ValueOf(&mixed).Elem(), 10)
		m := vram.MemoryRange{State: vram.MemoryMixed, Bytes: 1, Asleep: true, Mixed: &mixed}
		twice.add(&m)
		assert.Equal(t, Sums(mixed), twice)
		twice.add(&m)
		numbers := reflect.ValueOf(mixed)
		for at, f := range reflect.ValueOf(twice).Fields() {
			assert.Equal(t, 2*numbers.FieldByName(at.Name).Int(), f.Int(), at.Name)
		}
	}
}

// Options that are missing or too small have their documented values.
func TestOptionsAreCompleted(t *testing.T) {
	t.Parallel()
	for given, want := range map[Options]Options{
		{}:                              {DefaultInterval, DefaultHistoryCount},
		{Interval: 1, HistoryCount: -1}: {MinInterval, DefaultHistoryCount},
		{Interval: -1, HistoryCount: 1}: {MinInterval, 1},
		{Interval: MinInterval + 1, HistoryCount: 30}: {MinInterval + 1, 30},
	} {
		assert.Equal(t, want, given.complete(), "%v", given)
	}
}

// The counts of calls.json are of all call stacks, of which the list has the first.
func TestCallsAreOfAllStacks(t *testing.T) {
	var p vram.Profile
	of := reflect.TypeFor[reflect.Value]() // has many methods: each is a place
	require.Greater(t, of.NumMethod(), mostCalls+5)
	count, want := int64(0), int64(0)
	for i := range mostCalls + 5 {
		place := site.Stack{of.Method(i).Func.Pointer() + 1}
		for range 2 { // on two streams, say
			r := vram.ProfileRecord{Stack: place}
			r.InUse.Bytes, r.InUse.Count = int64(i+1), 3
			p.Records = append(p.Records, r)
		}
		p.Records = append(p.Records, vram.ProfileRecord{Stack: place}) // nothing is live
		count, want = count+1, want+2*int64(i+1)
	}
	got := callsOf(p)
	assert.EqualValues(t, count, got.StackCount)
	assert.Equal(t, want, got.LiveBytes)
	require.Len(t, got.Calls, mostCalls)
	for i, c := range got.Calls {
		assert.Equal(t, 2*(count-int64(i)), c.LiveBytes, "the most first")
		assert.EqualValues(t, 6, c.BufferCount)
	}
}

// A reading that failed is no answer for others.
func TestAFailedReadingIsNotKept(t *testing.T) {
	l := newLatest[int](time.Hour)
	failure := errors.New("planned")
	answer := func(value int, err error) (int, error) {
		return l.get(t.Context(), 1, func(context.Context) (int, error) { return value, err })
	}
	_, err := answer(1, failure)
	require.ErrorIs(t, err, failure)
	value, err := answer(2, nil)
	require.NoError(t, err)
	assert.Equal(t, 2, value)
	value, err = answer(3, failure)
	require.NoError(t, err, "the last one is young")
	assert.Equal(t, 2, value)
}
