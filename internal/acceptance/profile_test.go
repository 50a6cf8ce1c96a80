package acceptance_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// recordOf is the only record with that tag.
func recordOf(t *testing.T, p vram.Profile, tag string) (found vram.ProfileRecord) {
	t.Helper()
	count := 0
	for _, r := range p.Records {
		if r.Tag == tag {
			found = r
			count++
		}
	}
	require.Equal(t, 1, count, "records with the tag %q", tag)
	return found
}

// A profile names the place, the stream, the tag and the tenant of each allocation, and keeps the totals after the free
// and after Close.
func TestProfile(t *testing.T) {
	h := openHouse(t, vram.Config{SampleBytes: 1}, sim.Config{})
	tenant, err := h.Tenant("a", vram.Quota{})
	require.NoError(t, err)
	s := h.stream()
	b, err := s.AllocFor(t.Context(), vram.Request{Bytes: 5000, Tag: "weights", Tenant: tenant})
	require.NoError(t, err)
	x, err := s.Alloc(100)
	require.NoError(t, err)

	p := h.Profile()
	assert.EqualValues(t, 1, p.SampleBytes)
	require.Len(t, p.Records, 2)
	r := recordOf(t, p, "weights")
	assert.Regexp(t, `^acceptance_test\.TestProfile \(profile_test.go:\d+\)$`, r.Stack.String())
	assert.Equal(t, s.ID(), r.Stream)
	assert.Equal(t, "a", r.Tenant)
	once := vram.ProfileTotals{Count: 1, Bytes: 5000, SampledCount: 1, SampledBytes: 5000}
	assert.Equal(t, once, r.Allocated)
	assert.Equal(t, once, r.InUse)

	live, err := h.SampledBuffers(t.Context())
	require.NoError(t, err)
	require.Len(t, live, 2)
	for _, l := range live {
		assert.InDelta(t, 1, l.Weight, 0)
		assert.False(t, l.Allocated.IsZero())
		assert.Equal(t, map[vram.Ptr]int64{b.Ptr(): 5000, x.Ptr(): 100}[l.Ptr], l.Bytes)
	}

	require.NoError(t, b.Free())
	require.NoError(t, x.Free())
	r = recordOf(t, h.Profile(), "weights")
	assert.Equal(t, once, r.Allocated)
	assert.Zero(t, r.InUse)
	live, err = h.SampledBuffers(t.Context())
	require.NoError(t, err)
	assert.Empty(t, live)
	require.NoError(t, h.Close())
	assert.Equal(t, once, recordOf(t, h.Profile(), "weights").Allocated)
}

// Sampling is off unless it is configured, and can be switched on and off, and its rate changed, while buffers live: buffers of
// before are unknown to it, and each sampled one is followed to its free.
func TestSamplingIsSwitchedWhileInUse(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	pair := func() vram.Buffer {
		b, err := s.Alloc(4096)
		require.NoError(t, err)
		require.NoError(t, b.Free())
		b, err = s.Alloc(4096)
		require.NoError(t, err)
		return b
	}
	before := pair()
	assert.Empty(t, h.Profile().Records)
	require.NoError(t, h.Reconfigure(vram.Settings{SampleBytes: new(int64(1))}))
	sampled := pair()
	other := h.stream() // opened during the change
	inOther, err := other.Alloc(4096)
	require.NoError(t, err)
	require.NoError(t, h.Reconfigure(vram.Settings{SampleBytes: new(int64(0))}))
	assert.Zero(t, h.Profile().SampleBytes)
	after := pair()
	total := func() (allocated, inUse int64) {
		for _, r := range h.Profile().Records {
			allocated += r.Allocated.Count
			inUse += r.InUse.Count
		}
		return allocated, inUse
	}
	allocated, inUse := total()
	assert.EqualValues(t, 3, allocated)
	assert.EqualValues(t, 2, inUse)
	for _, b := range []vram.Buffer{before, sampled, inOther, after} {
		require.NoError(t, b.Free())
	}
	allocated, inUse = total()
	assert.EqualValues(t, 3, allocated)
	assert.Zero(t, inUse)

	var refused *vram.ConfigError
	require.ErrorAs(t, h.Reconfigure(vram.Settings{SampleBytes: new(int64(-1))}), &refused)
	assert.Equal(t, "SampleBytes", refused.Field)
	_, err = vram.Open(vram.Config{Driver: sim.New(sim.Config{}), SampleBytes: -1})
	require.ErrorAs(t, err, &refused)
}

// A buffer of SampleBytes or more is always sampled, at any rate; a rate beyond 1 TiB means 1 TiB.
func TestLongBuffersAreAlwaysSampled(t *testing.T) {
	for _, rate := range []int64{1, 512, 100_000, vram.DefaultSampleBytes, 4 << 30} {
		h := openHouse(t, vram.Config{SampleBytes: rate}, sim.Config{TotalBytes: 16 << 30})
		b, err := h.stream().Alloc(rate)
		require.NoError(t, err)
		require.Len(t, h.Profile().Records, 1, "a rate of %d", rate)
		assert.Equal(t, vram.ProfileTotals{Count: 1, Bytes: rate, SampledCount: 1, SampledBytes: rate}, h.Profile().Records[0].InUse)
		require.NoError(t, b.Free())
	}
	h := openHouse(t, vram.Config{SampleBytes: math.MaxInt64}, sim.Config{TotalBytes: 2 << 40})
	b, err := h.stream().Alloc(1 << 40)
	require.NoError(t, err)
	assert.Len(t, h.Profile().Records, 1)
	require.NoError(t, b.Free())
}

// Debug and an Observer get every buffer; the profile is sampled as if they were not there.
func TestDebugDoesNotChangeTheProfile(t *testing.T) {
	var told int
	h := openHouse(t, vram.Config{
		Debug: true, SampleBytes: 1 << 20, Observer: vram.Observer{Allocated: func(vram.BufferEvent) { told++ }},
	}, sim.Config{})
	s := h.stream()
	const count = 1 << 13
	for range count {
		b, err := s.Alloc(4096)
		require.NoError(t, err)
		require.NoError(t, b.Free())
	}
	assert.Equal(t, count, told)
	require.Len(t, h.Profile().Records, 1)
	allocated := h.Profile().Records[0].Allocated
	assert.InDelta(t, count/256, allocated.SampledCount, 5*math.Sqrt(count/256))
	assert.Equal(t, 256*allocated.SampledCount, allocated.Count)
	assert.Equal(t, 4096*allocated.Count, allocated.Bytes)
}

// A device that nobody opened has no profile.
func TestProfileOfNoDevice(t *testing.T) {
	var none *vram.Device
	assert.Zero(t, none.Profile())
	_, err := none.SampledBuffers(t.Context())
	require.ErrorIs(t, err, vram.ErrNotOpen)
}

// A warm request and a cold one from the same calls of the program are one record, although the allocator's own calls differ;
// also where more calls lead there than a stack has.
func TestAWarmAndAColdRequestAreOnePlace(t *testing.T) {
	for _, calls := range []int{0, 40} {
		h := openHouse(t, vram.Config{SampleBytes: 1}, sim.Config{})
		s := h.stream()
		var deep func(calls int)
		deep = func(calls int) {
			if calls > 0 {
				deep(calls - 1)
				return
			}
			b, err := s.Alloc(5000)
			require.NoError(t, err)
			require.NoError(t, b.Free())
		}
		for range 4 { // the first is cold
			deep(calls)
		}
		r := recordOf(t, h.Profile(), "")
		assert.Equal(t, vram.ProfileTotals{Count: 4, Bytes: 20_000, SampledCount: 4, SampledBytes: 20_000}, r.Allocated)
		assert.Zero(t, r.InUse)
	}
}

// A goroutine that runs nothing of the program has the function that it was started with as its place.
func TestThePlaceOfAGoroutineOfTheAllocatorAlone(t *testing.T) {
	told := make(chan string)
	h := openHouse(t, vram.Config{SampleBytes: 1, Observer: vram.Observer{
		Allocated: func(e vram.BufferEvent) { told <- e.Place.String() },
	}}, sim.Config{})
	s := h.stream()
	for range 3 { // the first is cold
		go s.AllocFor(context.Background(), vram.Request{Bytes: 5000, Tag: "alone"})
		assert.Regexp(t, `^streams\.\(\*Stream\)\.AllocFor \(alloc\.go:\d+\)$`, <-told)
	}
	r := recordOf(t, h.Profile(), "alone")
	assert.EqualValues(t, 3, r.InUse.SampledCount)
	require.Len(t, r.Stack.Frames(), 1)
	assert.True(t, strings.HasSuffix(r.Stack.Frames()[0].Function, "vram/streams.(*Stream).AllocFor"))
}
