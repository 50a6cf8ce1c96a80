package sampling

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/site"
)

const all = 1 << 23

func TestTotalsByPlace(t *testing.T) {
	var r Register
	here, there := site.Stack{1, 2}, site.Stack{1, 3}
	a := r.Site(Labels{Stream: 1}, here).Allocated(7, 100, all, all)
	b := r.Site(Labels{Stream: 1}, here).Allocated(8, 50, all/4, all)
	r.Site(Labels{Stream: 1, Tag: "x"}, here).Allocated(9, 3, all, all)
	r.Site(Labels{Stream: 1, Tenant: "x"}, here).Allocated(9, 4, all, all)
	r.Site(Labels{Stream: 1}, there).Allocated(9, 5, all, all)
	r.Site(Labels{Stream: 2}, here).Allocated(9, 6, all, all)
	records := r.Read()
	require.Len(t, records, 5, "places are told apart by every label, and by the stack")
	find := func() Record {
		for _, x := range r.Read() {
			if x.Stream == 1 && x.Tag == "" && x.Tenant == "" && x.Stack[1] == 2 {
				return x
			}
		}
		t.Fatal("no such record")
		return Record{}
	}
	assert.Equal(t, Totals{Count: 5, Bytes: 300, SampledCount: 2, SampledBytes: 150}, find().Allocated)
	assert.Equal(t, find().Allocated, find().InUse)
	assert.InDelta(t, 4, b.Weight(), 0)
	b.End()
	assert.Equal(t, Totals{Count: 1, Bytes: 100, SampledCount: 1, SampledBytes: 100}, find().InUse)
	a.End()
	assert.Equal(t, Totals{}, find().InUse)
	assert.Equal(t, Totals{Count: 5, Bytes: 300, SampledCount: 2, SampledBytes: 150}, find().Allocated)
	assert.EqualValues(t, 8, b.At)
}

// A place whose buffers were all freed has nothing in use, also if the weights are not integers.
func TestAFreeTakesAwayWhatTheAllocationAdded(t *testing.T) {
	var r Register
	var samples []Sample
	for i := range 1000 {
		chance := uint32(i*7919%all + 1)
		samples = append(samples, r.Site(Labels{}, site.Stack{9}).Allocated(0, int64(i), chance, all))
	}
	assert.Positive(t, r.Read()[0].InUse.Bytes)
	for i := range samples {
		x := &samples[i]
		x.End()
	}
	assert.Equal(t, Totals{}, r.Read()[0].InUse)
}

// A register keeps a bounded number of places, and counts all others together.
func TestPlacesAreBounded(t *testing.T) {
	const more = sweepAfter + 2 // two sweeps look for room
	var r Register
	for i := range SiteLimit + more {
		r.Site(Labels{Stream: uint32(i)}, site.Stack{uintptr(i)}).Allocated(0, 1, all, all)
	}
	records := r.Read()
	require.Len(t, records, SiteLimit+1)
	last := records[SiteLimit]
	assert.Empty(t, last.Stack)
	assert.EqualValues(t, more, last.Allocated.Count)
	r.Site(Labels{Stream: 5}, site.Stack{5}).Allocated(0, 1, all, all)
	assert.EqualValues(t, more, r.Read()[SiteLimit].Allocated.Count, "a place that is known stays known")
}

// Goroutines that concurrently enter places enter each once, and lose nothing.
func TestManyEnterPlaces(t *testing.T) {
	var r Register
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 500 {
				x := r.Site(Labels{}, site.Stack{uintptr(i)}).Allocated(0, 10, all/2, all)
				if i%2 == 0 {
					x.End()
				}
			}
		})
	}
	group.Wait()
	records := r.Read()
	require.Len(t, records, 500)
	for _, x := range records {
		assert.EqualValues(t, 8, x.Allocated.SampledCount)
		assert.EqualValues(t, 160, x.Allocated.Bytes)
		if x.Stack[0]%2 == 0 {
			assert.Zero(t, x.InUse)
		} else {
			assert.Equal(t, x.Allocated, x.InUse)
		}
	}
}

// Sites that show the same calls, since they differ only inside the allocator, share one record for each of
// their labels.
func TestSitesOfOnePlaceAreOneRecord(t *testing.T) {
	var r Register
	inside := func(function any) uintptr { return reflect.ValueOf(function).Pointer() + 1 }
	here := site.Here(0)
	warm := append(site.Stack{inside((*Register).Site)}, here...)
	cold := append(site.Stack{inside((*Register).Read), inside((*Register).Site)}, here...)
	r.Site(Labels{}, warm).Allocated(0, 10, all, all)
	gone := r.Site(Labels{}, cold).Allocated(0, 7, all/2, all)
	r.Site(Labels{Tag: "x"}, cold).Allocated(0, 1, all, all)
	r.Site(Labels{}, here[1:]).Allocated(0, 2, all, all) // the caller's caller
	gone.End()

	records := map[int64]Record{}
	for _, x := range r.Read() {
		records[x.Allocated.Bytes] = x
	}
	require.Len(t, records, 3)
	assert.Equal(t, Totals{Count: 3, Bytes: 24, SampledCount: 2, SampledBytes: 17}, records[24].Allocated)
	assert.Equal(t, Totals{Count: 1, Bytes: 10, SampledCount: 1, SampledBytes: 10}, records[24].InUse)
	assert.Contains(t, records[24].Stack.String(), "TestSitesOfOnePlaceAreOneRecord")
}

// Two functions in one line are two records.
func TestFunctionsAreToldApart(t *testing.T) {
	var r Register
	one, other := func() site.Stack { return site.Here(0)[:1] }, func() site.Stack { return site.Here(0)[:1] }
	r.Site(Labels{}, one()).Allocated(0, 1, all, all)
	r.Site(Labels{}, other()).Allocated(0, 2, all, all)
	require.Len(t, r.Read(), 2)
}

// Two lines of a function are two records.
func TestLinesAreToldApart(t *testing.T) {
	var r Register
	here := site.Here(0)
	below := site.Here(0)
	r.Site(Labels{}, here).Allocated(0, 1, all, all)
	r.Site(Labels{}, below).Allocated(0, 2, all, all)
	require.Len(t, r.Read(), 2)
}

// The record of all other places is there from the first sample on, also of a buffer of no bytes.
func TestTheRecordOfOtherPlaces(t *testing.T) {
	for _, bytes := range []int64{0, 7} {
		var r Register
		require.Empty(t, r.Read())
		r.other.Allocated(0, bytes, all, all)
		records := r.Read()
		require.Len(t, records, 1, "%d bytes", bytes)
		assert.Equal(t, Totals{Count: 1, Bytes: bytes, SampledCount: 1, SampledBytes: bytes}, records[0].Allocated)
	}
}

// The bytes that a sample stands for are rounded to the nearest number.
func TestSampledBytesAreRounded(t *testing.T) {
	for bytes, want := range []int64{0, 2, 3, 5, 6, 8, 9, 11} { // one and a half times each
		var r Register
		r.Site(Labels{}, site.Stack{1}).Allocated(0, int64(bytes), 4, 6)
		assert.Equal(t, want, r.Read()[0].InUse.Bytes, bytes)
	}
}

// Places whose samples were all freed make room for any number of others; their totals stay with their stack.
func TestPlacesWithoutLiveSamplesMakeRoom(t *testing.T) {
	var r Register
	here, there := site.Stack{1, 2}, site.Stack{3}
	kept := r.Site(Labels{Stream: 1, Tag: "kept"}, here).Allocated(0, 7, all, all)
	const rounds = 5 * SiteLimit
	for i := range rounds {
		s := r.Site(Labels{Stream: uint32(i + 2)}, there)
		x := s.Allocated(0, 10, all, all)
		require.NotSame(t, &r.other, x.of, "round %d", i)
		x.End()
		require.LessOrEqual(t, int(r.tree.Load().count.Load()), SiteLimit)
	}
	var count, bytes int64
	for _, x := range r.Read() {
		if x.Tag == "kept" {
			assert.Equal(t, Totals{Count: 1, Bytes: 7, SampledCount: 1, SampledBytes: 7}, x.InUse)
			continue
		}
		assert.Equal(t, there, x.Stack)
		assert.Zero(t, x.InUse)
		count, bytes = count+x.Allocated.Count, bytes+x.Allocated.Bytes
	}
	assert.EqualValues(t, rounds, count)
	assert.EqualValues(t, 10*rounds, bytes)
	kept.End()
	for _, x := range r.Read() {
		assert.Zero(t, x.InUse)
	}
}

// Stacks without live samples are bounded, too.
func TestGatheredStacksAreBounded(t *testing.T) {
	var r Register
	const rounds = 4 * SiteLimit
	for i := range rounds {
		x := r.Site(Labels{Stream: 1}, site.Stack{uintptr(i)}).Allocated(0, 10, all, all)
		x.End()
		require.LessOrEqual(t, int(r.tree.Load().count.Load()), SiteLimit)
	}
	var count int64
	for _, x := range r.Read() {
		count += x.Allocated.Count
	}
	assert.EqualValues(t, rounds, count)
	gathered := 0
	for _, s := range r.tree.Load().all(nil) {
		if s.labels == (Labels{}) {
			gathered++
		}
	}
	assert.Equal(t, gatheredLimit, gathered)
}

// Goroutines that enter, count and end while places are retired lose no sample.
func TestRetiringLosesNoSample(t *testing.T) {
	var r Register
	const goroutines, rounds = 3, SiteLimit
	var group sync.WaitGroup
	live := make([]Sample, goroutines)
	for g := range goroutines {
		group.Go(func() {
			live[g] = r.Site(Labels{Stream: uint32(g + 1), Tag: "live"}, site.Stack{9}).Allocated(0, 1, all, all)
			for i := range rounds {
				x := r.Site(Labels{Stream: uint32(i + 1)}, site.Stack{uintptr(g)}).Allocated(0, 10, all, all)
				x.End()
			}
		})
	}
	group.Wait()
	var allocated, inUse int64
	for _, x := range r.Read() {
		allocated += x.Allocated.SampledCount
		inUse += x.InUse.SampledCount
	}
	assert.EqualValues(t, goroutines*(rounds+1), allocated)
	assert.EqualValues(t, goroutines, inUse)
	for g := range live {
		live[g].End()
	}
}

// The weight of a sample is rounded to the nearest part, so that the errors of many do not add up.
func TestWeightsAreRounded(t *testing.T) {
	for chance := uint32(1); chance <= 24; chance++ {
		for whole := chance + 1; whole < 4*chance; whole++ {
			var r Register
			s := r.Site(Labels{}, site.Stack{1})
			s.Allocated(0, 1, chance, whole)
			exact := weightOne * float64(whole) / float64(chance)
			assert.InDelta(t, exact, s.totals[2].Load(), 0.5, "%d of %d", chance, whole)
		}
	}
}

// A sample of a place that was retired since it was looked up is counted with those without room.
func TestASampleOfARetiredPlaceIsCounted(t *testing.T) {
	var r Register
	early := r.Site(Labels{Stream: 1, Tag: "early"}, site.Stack{9})
	var others int64
	for i := uint32(0); early.live.Load() >= 0; i++ {
		require.Less(t, i, uint32(4*SiteLimit), "it is retired once there is no room")
		r.Site(Labels{Stream: i + 2}, site.Stack{3}).Allocated(0, 1, all, all)
		others++
	}
	x := early.Allocated(0, 10, all, all)
	total := func() (allocated, inUse int64) {
		for _, x := range r.Read() {
			assert.NotEqual(t, "early", x.Tag)
			allocated, inUse = allocated+x.Allocated.Bytes, inUse+x.InUse.Bytes
		}
		return allocated, inUse
	}
	allocated, inUse := total()
	assert.Equal(t, others+10, allocated)
	assert.Equal(t, others+10, inUse)
	x.End()
	allocated, inUse = total()
	assert.Equal(t, others+10, allocated)
	assert.Equal(t, others, inUse)
}

// A sample that stands for itself alone has any number of bytes, and counts once.
func TestACertainSampleCountsAsItIs(t *testing.T) {
	var r Register
	const bytes = 1 << 61
	x := r.Site(Labels{}, site.Stack{1}).Allocated(0, bytes, all, all)
	assert.Equal(t, Totals{Count: 1, Bytes: bytes, SampledCount: 1, SampledBytes: bytes}, r.Read()[0].InUse)
	x.End()
	assert.Equal(t, Totals{}, r.Read()[0].InUse)
}

// Counts are rounded to the nearest number.
func TestCountsAreRounded(t *testing.T) {
	for parts, want := range map[int64]int64{
		0: 0, weightOne/2 - 1: 0, weightOne / 2: 1, weightOne: 1, weightOne + weightOne/2 - 1: 1, weightOne + weightOne/2: 2,
	} {
		assert.Equal(t, want, totalsOf([totalCount]int64{2: parts}).Count, "%d", parts)
	}
}

// A place that is entered in a tree after its sweep is counted with the others: the register reads that tree no more.
func TestAPlaceThatComesAfterASweepIsNotLost(t *testing.T) {
	var r Register
	r.Site(Labels{Stream: 1}, site.Stack{1}).Allocated(0, 1, all, all)
	old := r.tree.Load()
	swept := r.sweep(old)
	require.NotNil(t, swept)
	r.tree.Store(old) // as a goroutine sees it that has looked before
	late := r.Site(Labels{Stream: 2}, site.Stack{2})
	r.tree.Store(swept)
	late.Allocated(0, 1, all, all)
	var count float64
	for _, x := range r.Read() {
		count += float64(x.Allocated.Count)
	}
	assert.InDelta(t, 2, count, 0)
}

// Places are found within a few steps, also if they differ in one thing alone: the stream, the tag, the tenant, or the stack.
func TestPlacesAreFoundWithinAFewSteps(t *testing.T) {
	for name, place := range map[string]func(i int) (Labels, site.Stack){
		"streams": func(i int) (Labels, site.Stack) { return Labels{Stream: uint32(i)}, nil },
		"tags":    func(i int) (Labels, site.Stack) { return Labels{Tag: fmt.Sprint(i)}, nil },
		"tenants": func(i int) (Labels, site.Stack) { return Labels{Tenant: fmt.Sprint(i)}, nil },
		"stacks":  func(i int) (Labels, site.Stack) { return Labels{}, site.Stack{7, 0x400000 + 16*uintptr(i), 9} },
	} {
		var r Register
		for i := range SiteLimit {
			r.Site(place(i))
		}
		var depth func(n *node) int
		depth = func(n *node) (most int) {
			for i := range n.below {
				if below := n.below[i].Load(); below != nil {
					most = max(most, 1+depth(below))
				}
			}
			return most
		}
		assert.LessOrEqual(t, depth(&r.tree.Load().root), 16, name) // 6 of them, if they were spread evenly
	}
}
