package streams

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/stream/sampling"
	"github.com/go-vram/vram/pool"
)

// profiled opens a stream whose buffers are sampled.
func (r *rig) profiled(share magazine.Share) (*Stream, *Profile) {
	r.t.Helper()
	h, err := r.device.StreamCreate()
	require.NoError(r.t, err)
	p := new(Profile)
	p.SetShare(share)
	s, _, err := Open(Config{
		ID: uint32(len(r.streams) + 1), Pool: r.pool, Device: r.device, Fences: r.fences, Handle: h,
		Limit: &r.limit, Share: share, Profile: p, Peers: &r.peers,
	})
	require.NoError(r.t, err)
	r.streams = append(r.streams, s)
	return s, p
}

func sums(p *Profile) (allocated, inUse sampling.Totals) {
	for _, x := range p.Read() {
		allocated.Count += x.Allocated.Count
		allocated.Bytes += x.Allocated.Bytes
		allocated.SampledCount += x.Allocated.SampledCount
		inUse.Count += x.InUse.Count
		inUse.Bytes += x.InUse.Bytes
		inUse.SampledCount += x.InUse.SampledCount
	}
	return allocated, inUse
}

// ways are all ways to a buffer, warm and cold.
func ways(t *testing.T, s *Stream) map[string]func(bytes int64) []Buffer {
	t.Helper()
	ctx := context.Background()
	one := func(b Buffer, err error) []Buffer {
		require.NoError(t, err)
		return []Buffer{b}
	}
	owner := pool.NewTenant("owner", 1, pool.Quota{})
	s.pool.AddTenants(owner)
	return map[string]func(bytes int64) []Buffer{
		"Alloc":         func(bytes int64) []Buffer { return one(s.Alloc(bytes)) },
		"AllocFor":      func(bytes int64) []Buffer { return one(s.AllocFor(ctx, Request{Bytes: bytes})) },
		"AllocFor, tag": func(bytes int64) []Buffer { return one(s.AllocFor(ctx, Request{Bytes: bytes, Tag: "a", Zero: true})) },
		"AllocFor, aligned": func(bytes int64) []Buffer {
			return one(s.AllocFor(ctx, Request{Bytes: bytes, Align: 4096}))
		},
		"AllocAsync":       func(bytes int64) []Buffer { return one(s.AllocAsync(ctx, Request{Bytes: bytes}).Await(ctx)) },
		"AllocFor, tenant": func(bytes int64) []Buffer { return one(s.AllocFor(ctx, Request{Bytes: bytes, Tenant: owner})) },
		"AllocBatchFor, tenant": func(bytes int64) []Buffer {
			b, err := s.AllocBatchFor(ctx, BatchRequest{Bytes: []int64{bytes, 700, bytes}, Tenant: owner})
			require.NoError(t, err)
			return b.Buffers()
		},
		"AllocBatch": func(bytes int64) []Buffer {
			dst := make([]Buffer, 3)
			require.NoError(t, s.AllocBatch(dst, []int64{bytes, 700, bytes}))
			return dst
		},
		"AllocBatchFor": func(bytes int64) []Buffer {
			b, err := s.AllocBatchFor(ctx, BatchRequest{Bytes: []int64{bytes, 700, bytes}})
			require.NoError(t, err)
			return b.Buffers()
		},
	}
}

// Where everything is sampled each way to a buffer counts it once, with the bytes that were requested, and each way back
// ends it; also while another goroutine is in the turn, so that the request is a message.
func TestEveryWayIsSampledOnce(t *testing.T) {
	r := newRig(t, 512*mib)
	s, p := r.profiled(magazine.Everything)
	for name, way := range ways(t, s) {
		for _, bytes := range []int64{0, 1, 5000, 3 << 20, 20 << 20} {
			for round := range 4 { // cold, then warm
				before, none := sums(p)
				require.Zero(t, none, "%s of %d", name, bytes)
				var b []Buffer
				if round == 3 {
					leave := r.occupy(s)
					var done sync.WaitGroup
					done.Go(func() { b = way(bytes) })
					leave()
					done.Wait()
				} else {
					b = way(bytes)
				}
				after, live := sums(p)
				var sum int64
				for _, x := range b {
					sum += x.Bytes()
				}
				require.EqualValues(t, len(b), after.Count-before.Count, "%s of %d, round %d", name, bytes, round)
				require.Equal(t, sum, after.Bytes-before.Bytes, "%s of %d, round %d", name, bytes, round)
				require.EqualValues(t, len(b), live.SampledCount)
				list, err := control(s).Sampled(t.Context())
				require.NoError(t, err)
				require.Len(t, list, len(b))
				assert.Contains(t, list[0].Stack.String(), "streams.ways")
				require.NoError(t, freeBatch(b))
			}
		}
	}
	require.NoError(t, control(s).Check(context.Background()))
}

// Estimates of all allocations are right within five standard deviations on each way, at a rate at which large
// buffers are always sampled and small ones rarely; and nothing is in use in the end.
func TestSamplesEstimateWhatWasAllocated(t *testing.T) {
	const share = 1 << 18 // 4 MiB
	sizes := []int64{600, 5000, 70_000, 1 << 20, 5 << 20}
	for name := range ways(t, newRig(t, 64*mib).stream(core.Budget{})) {
		r := newRig(t, 512*mib)
		s, p := r.profiled(share)
		way := ways(t, s)[name]
		var wantBytes, wantCount, bytesVariance, countVariance float64
		for i := range 6000 {
			if i%100 == 0 {
				control(s).Tick() // at the full rate
			}
			bytes := sizes[i%len(sizes)]
			if name == "AllocBatch" || name == "AllocBatchFor" {
				bytes = sizes[i%3]
			}
			b := way(bytes)
			for _, x := range b {
				n, chance := float64(x.Bytes()), float64(magazine.Share(share).Threshold(uint64(x.slot.Magazine().UnitsOf(x.slot))))/float64(magazine.Everything)
				wantBytes += n
				wantCount++
				bytesVariance += n * n * (1 - chance) / chance
				countVariance += (1 - chance) / chance
			}
			require.NoError(t, freeBatch(b))
		}
		allocated, inUse := sums(p)
		assert.Zero(t, inUse, name)
		assert.InDelta(t, wantBytes, float64(allocated.Bytes), 5*math.Sqrt(bytesVariance), name)
		assert.InDelta(t, wantCount, float64(allocated.Count), 5*math.Sqrt(countVariance), name)
		assert.Less(t, float64(allocated.SampledCount), wantCount/2, name)
	}
}

// A cancelled request, and a batch that the memory does not suffice for, leave nothing in use.
func TestCancelledRequestsLeaveNoSamples(t *testing.T) {
	r := newRig(t, 256*mib)
	s, p := r.profiled(magazine.Everything)
	for range 20 {
		f := s.AllocAsync(context.Background(), Request{Bytes: 32 << 20})
		if b, err := f.Await(context.Background()); !f.Cancel() && err == nil {
			require.NoError(t, b.Free())
		}
	}
	require.Error(t, s.AllocBatch(make([]Buffer, 2), []int64{200 << 20, 200 << 20}))
	_, inUse := sums(p)
	assert.Zero(t, inUse)
}

// A sampled buffer that is handed over stays sampled until its free, and a refused free names where it was allocated.
func TestATransferredBufferStaysSampled(t *testing.T) {
	r := newRig(t, 64*mib)
	s, p := r.profiled(magazine.Everything)
	other := r.stream(core.Budget{})
	b, err := s.AllocFor(t.Context(), Request{Bytes: 5000, Tag: "a"})
	require.NoError(t, err)
	moved, err := b.Transfer(other)
	require.NoError(t, err)
	_, inUse := sums(p)
	assert.EqualValues(t, 5000, inUse.Bytes)
	require.NoError(t, moved.Free())
	_, inUse = sums(p)
	assert.Zero(t, inUse)
	var refused *FreeError
	require.ErrorAs(t, moved.Free(), &refused)
	assert.Contains(t, refused.Allocated.String(), "TestATransferredBufferStaysSampled")
	assert.Contains(t, refused.Freed.String(), "TestATransferredBufferStaysSampled")
}

// Goroutines that share a stream and a tenant are sampled and ended without loss, under the labels of both.
func TestSamplesOfManyGoroutines(t *testing.T) {
	r := newRig(t, 256*mib)
	s, p := r.profiled(magazine.Everything)
	tenant := pool.NewTenant("a", 1, pool.Quota{})
	r.pool.AddTenants(tenant)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 500 {
				want := Request{Bytes: int64(i%7*3000 + 1)}
				if g%2 == 0 {
					want.Tenant = tenant
				}
				b, err := s.AllocFor(context.Background(), want)
				if assert.NoError(t, err) {
					assert.NoError(t, b.Free())
				}
			}
		})
	}
	group.Wait()
	allocated, inUse := sums(p)
	assert.EqualValues(t, 2000, allocated.Count)
	assert.Zero(t, inUse)
	byTenant := map[string]int64{}
	for _, x := range p.Read() {
		byTenant[x.Tenant] += x.Allocated.Count
		assert.Equal(t, s.ID(), x.Stream)
	}
	assert.Equal(t, map[string]int64{"": 1000, "a": 1000}, byTenant)
	require.NoError(t, control(s).Check(context.Background()))
}

// A stream that allocates long blocks again and again is sampled the more rarely the more it allocates between two
// ticks, its estimates stay right, and a tick ends that.
func TestSamplesBetweenTicksAreBounded(t *testing.T) {
	const share = 1 << 18 // 4 MiB
	for name := range ways(t, newRig(t, 64*mib).stream(core.Budget{})) {
		r := newRig(t, 512*mib)
		s, p := r.profiled(share)
		way := ways(t, s)[name]
		var count, variance float64
		var samples []int64 // after each tick
		for range 3 {
			for range 20_000 / len(ways(t, s)) {
				for range 2 {
					b := way(5 << 20)
					for _, x := range b {
						chance := float64(s.cache.Share().Threshold(uint64(x.slot.Magazine().UnitsOf(x.slot)))) / float64(magazine.Everything)
						count++
						variance += (1 - chance) / chance
					}
					require.NoError(t, freeBatch(b))
				}
			}
			allocated, _ := sums(p)
			samples = append(samples, allocated.SampledCount)
			control(s).Tick()
		}
		allocated, inUse := sums(p)
		assert.Zero(t, inUse, name)
		assert.InDelta(t, count, float64(allocated.Count), 5*math.Sqrt(variance)+1, name)
		n := count / 3
		require.Greater(t, n, 2.0*wholeSamples)
		bound := wholeSamples + halfSamples*(math.Log2(n/wholeSamples)+3)
		for i, all := range samples {
			assert.Less(t, float64(all), float64(i+1)*bound, "%s, tick %d", name, i)
			assert.Greater(t, float64(all), float64(i+1)*(wholeSamples-1), "%s, tick %d: a tick ends the limit", name, i)
		}
	}
}

// Of all outcomes of a draw exactly as many sample an allocation as the chance that is returned says: its inverse is the weight
// of the sample. Where everything is watched the profile counts that part.
func TestAChanceIsTheShareOfDraws(t *testing.T) {
	t.Parallel()
	const share = magazine.Everything / 8
	s, _ := newRig(t, 64*mib).profiled(share)
	for units, want := range map[uint64]uint32{1: uint32(share), 3: 3 * uint32(share), 9: uint32(magazine.Everything)} {
		for draw, is := range map[uint32]bool{0: true, want - 1: true, want: false} {
			chance, sampled := s.sampler.decide(draw, units)
			assert.Equal(t, want, chance)
			assert.Equal(t, is, sampled, "draw %d of %d", draw, want)
		}
	}
	all, p := newRig(t, 64*mib).profiled(magazine.Everything)
	p.SetShare(share)
	for draw, want := range map[uint32]uint32{0: uint32(share), uint32(share) - 1: uint32(share), uint32(share): 0} {
		chance, sampled := all.sampler.decide(draw, 1)
		assert.True(t, sampled, "everything is watched")
		assert.Equal(t, want, chance, "draw %d", draw)
	}
}

// A stream whose share is whole takes fewer samples from a number on within a tick, and the whole share again after it.
func TestManySamplesLowerTheShare(t *testing.T) {
	t.Parallel()
	const share = magazine.Everything / 8
	s, _ := newRig(t, 64*mib).profiled(share)
	w := &s.sampler
	for n := range uint32(wholeSamples) {
		w.limit(n)
		require.Equal(t, share, w.home.Share(), n)
	}
	for halved := range uint32(3) {
		for n := range uint32(halfSamples) {
			w.limit(wholeSamples + halved*halfSamples + n)
			require.Equal(t, share>>(halved+1), w.home.Share(), n)
		}
	}
	w.taken.Store(wholeSamples - 1)
	w.tick()
	assert.Equal(t, share>>3, w.home.Share(), "it was not lowered since the last tick")
	w.taken.Store(wholeSamples)
	w.tick()
	assert.Equal(t, share, w.home.Share())
	assert.Zero(t, w.taken.Load())
}
