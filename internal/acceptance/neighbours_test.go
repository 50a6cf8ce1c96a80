package acceptance_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

// neighbour is a second device on the GPU of a house, by a driver value of its own.
func (h *house) neighbour(cfg vram.Config) *vram.Device {
	h.t.Helper()
	cfg.Driver = fault.Wrap(h.faults)
	d, err := vram.Open(cfg)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { assert.NoError(h.t, d.Close()) })
	return d
}

// Memory that one device has free serves the requests of another on the same GPU: single ones,
// batches, reservations. Each was tried again, and none ended without memory.
func TestADeviceReleasesWhatAnotherOnItsGPUNeeds(t *testing.T) {
	requests := map[string]func(t *testing.T, d *vram.Device, s *vram.Stream){
		"a buffer": func(t *testing.T, _ *vram.Device, s *vram.Stream) {
			t.Helper()
			freeAll(t, must(t, s, 3*gib))
		},
		"a future": func(t *testing.T, _ *vram.Device, s *vram.Stream) {
			t.Helper()
			b, err := s.AllocAsync(t.Context(), vram.Request{Bytes: 3 * gib, Align: 4096}).Await(t.Context())
			require.NoError(t, err)
			freeAll(t, b)
		},
		"a batch": func(t *testing.T, _ *vram.Device, s *vram.Stream) {
			t.Helper()
			b := make([]vram.Buffer, 3)
			require.NoError(t, s.AllocBatch(b, []int64{gib, gib, gib}))
			freeAll(t, b...)
		},
		"a reservation": func(t *testing.T, d *vram.Device, _ *vram.Stream) {
			t.Helper()
			r, err := d.Reserve(t.Context(), 3*gib)
			require.NoError(t, err)
			r.Release()
		},
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 4 * gib})
			d := h.neighbour(vram.Config{})
			own, other := h.stream(), must2(t)(d.NewStream())
			kept := must(t, own, 512*mib)
			freeAll(t, must(t, own, 3*gib))
			assert.GreaterOrEqual(t, h.Stats().ReservedBytes, 3*gib)
			request(t, d, other)
			assert.LessOrEqual(t, h.Stats().ReservedBytes, gib, "the live buffer, and what the driver had left")
			assert.GreaterOrEqual(t, d.Stats().NeighbourBytes, 2*gib)
			assert.Zero(t, h.Stats().NeighbourBytes)
			counts := d.Stats().RequestCounts
			assert.Positive(t, counts.RetryCount)
			assert.Equal(t, pool.RequestCounts{RetryCount: counts.RetryCount}, counts)
			assert.True(t, kept.Live())
			freeAll(t, kept)
		})
	}
}

// The live memory of a neighbour stays, and the error has the driver's refusal. A request that it ends counts once, also one for a
// reservation.
func TestANeighbourKeepsWhatLives(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 4 * gib})
	d := h.neighbour(vram.Config{})
	live := must(t, h.stream(), 3*gib)
	s := must2(t)(d.NewStream())
	_, err := s.Alloc(2 * gib)
	var short *vram.OutOfMemoryError
	require.ErrorAs(t, err, &short)
	require.Error(t, short.Cause)
	assert.Zero(t, d.Stats().NeighbourBytes)
	assert.Equal(t, pool.RequestCounts{OutOfMemoryCount: 1}, d.Stats().RequestCounts)
	_, err = d.Reserve(t.Context(), 2*gib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	assert.Equal(t, pool.RequestCounts{OutOfMemoryCount: 2}, d.Stats().RequestCounts)
	freeAll(t, live)
	freeAll(t, must(t, s, 2*gib))
}

// What a neighbour released counts, also if it was too little and the request was refused.
func TestTooLittleOfANeighbourCounts(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 4 * gib})
	d := h.neighbour(vram.Config{})
	own := h.stream()
	live := must(t, own, 2*gib)
	freeAll(t, must(t, own, gib))
	before := h.Stats().ReservedBytes
	_, err := must2(t)(d.NewStream()).Alloc(3 * gib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	released := before - h.Stats().ReservedBytes
	assert.GreaterOrEqual(t, released, gib)
	assert.Equal(t, released, d.Stats().NeighbourBytes)
	freeAll(t, live)
}

// nameless is a driver that cannot tell which GPU a device is on.
type nameless struct{ cudadrv.Driver }

func (d nameless) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := d.Driver.Open(ordinal)
	return namelessDevice{dev}, err
}

type namelessDevice struct{ cudadrv.Device }

func (d namelessDevice) Info() cudadrv.Info {
	info := d.Device.Info()
	info.UUID = cudadrv.UUID{}
	return info
}

// Devices whose driver names no GPU may be on any: they have no neighbours.
func TestDevicesOfNoNameAreNoNeighbours(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 4 * gib})
	var streams []*vram.Stream
	var devices []*vram.Device
	for range 2 {
		d, err := vram.Open(vram.Config{Driver: nameless{h.faults}})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, d.Close()) })
		devices = append(devices, d)
		streams = append(streams, must2(t)(d.NewStream()))
	}
	freeAll(t, must(t, streams[0], 3*gib))
	held := devices[0].Stats().ReservedBytes
	_, err := streams[1].Alloc(3 * gib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	assert.Equal(t, held, devices[0].Stats().ReservedBytes)
	assert.Zero(t, devices[1].Stats().NeighbourBytes)
}

// A limit is the device's own: where it refuses, no other device is asked. Nor is one on another
// GPU, or one that is closed.
func TestOnlyTheDriversRefusalAsksNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 4 * gib, Devices: 2})
		limited, elsewhere, closed := h.neighbour(vram.Config{LimitBytes: gib}), h.neighbour(vram.Config{Ordinal: 1}), h.neighbour(vram.Config{})
		own := h.stream()
		freeAll(t, must(t, own, 3*gib))
		freeAll(t, must(t, must2(t)(elsewhere.NewStream()), 3*gib))
		freeAll(t, must(t, must2(t)(closed.NewStream()), mib))
		require.NoError(t, closed.Close())
		s := must2(t)(limited.NewStream())
		x := must(t, s, gib)
		before := h.Stats().ReservedBytes
		_, err := s.Alloc(gib / 2)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		assert.Equal(t, before, h.Stats().ReservedBytes)
		assert.GreaterOrEqual(t, elsewhere.Stats().ReservedBytes, 3*gib)
		freeAll(t, x)
	})
}

// A neighbour releases as much as is missing, and keeps the rest of its free memory.
func TestANeighbourReleasesNoMoreThanIsMissing(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 16 * gib})
	s := must2(t)(h.neighbour(vram.Config{}).NewStream())
	own := h.stream()
	var all []vram.Buffer
	for range 15 * 4 {
		all = append(all, must(t, own, 256*mib))
	}
	freeAll(t, all...)
	freeAll(t, must(t, s, 2*gib))
	assert.GreaterOrEqual(t, h.Stats().ReservedBytes, 12*gib)
}

// Neighbours are asked before the program's own handler, which has the last word.
func TestTheHandlerIsAskedAfterNeighbours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 4 * gib})
		calls := 0
		d := h.neighbour(vram.Config{OnOutOfMemory: func(*vram.OutOfMemoryError) bool { calls++; return false }})
		own, s := h.stream(), must2(t)(d.NewStream())
		freeAll(t, must(t, own, 3*gib))
		x := must(t, s, 3*gib)
		assert.Zero(t, calls)
		_, err := s.Alloc(3 * gib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		assert.Equal(t, 1, calls)
		freeAll(t, x)
	})
}

// Two devices that ask each other at once both end.
func TestNeighboursAskEachOther(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 4 * gib})
	d := h.neighbour(vram.Config{})
	a, b := h.stream(), must2(t)(d.NewStream())
	done := make(chan struct{})
	for _, s := range []*vram.Stream{a, b} {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 50 {
				x, err := s.AllocFor(context.Background(), vram.Request{Bytes: 3 * gib})
				if err != nil {
					assert.ErrorIs(t, err, vram.ErrOutOfMemory)
					continue
				}
				assert.NoError(t, x.Free())
			}
		}()
	}
	<-done
	<-done
}

// must2 ends the test on an error.
func must2(t *testing.T) func(s *vram.Stream, err error) *vram.Stream {
	t.Helper()
	return func(s *vram.Stream, err error) *vram.Stream {
		t.Helper()
		require.NoError(t, err)
		return s
	}
}

// Several neighbours release together what is missing, and no more, in whatever order they are asked and however much each of them
// has: the first may have a part of it.
func TestNeighboursReleaseTogetherWhatIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slack = 128 // MiB
		for _, free := range [][]int64{{1024, 2560}, {2560, 1024}, {512, 512, 2560}, {1200, 1200, 1200}, {0, 3584}} {
			h := openHouse(t, vram.Config{Footprint: vram.Lean}, sim.Config{TotalBytes: 4 * gib})
			s := h.stream()
			var others []*vram.Device
			var heldBytes int64
			for _, count := range free {
				d := h.neighbour(vram.Config{Footprint: vram.Lean})
				own := must2(t)(d.NewStream())
				var all []vram.Buffer
				for range count / 64 {
					all = append(all, must(t, own, 64*mib))
				}
				freeAll(t, all...)
				others = append(others, d)
				heldBytes += d.Stats().ReservedBytes
			}
			const wanted = 2048
			b := must(t, s, wanted*mib)
			var leftBytes int64
			for _, d := range others {
				leftBytes += d.Stats().ReservedBytes
			}
			released := heldBytes - leftBytes
			assert.Equal(t, released, h.Stats().NeighbourBytes, "%v", free)
			assert.LessOrEqual(t, released, (wanted+slack)*mib, "%v", free)
			freeAll(t, b)
			require.NoError(t, h.Close())
		}
	})
}

// A neighbour whose driver does not answer is waited for no longer than a second: the request is refused then, and what the
// neighbour releases later serves further ones.
func TestANeighbourThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 4 * gib})
		s := h.stream()
		slow := fault.Wrap(h.faults)
		d, err := vram.Open(vram.Config{Driver: slow})
		require.NoError(t, err)
		freeAll(t, must(t, must2(t)(d.NewStream()), 3*gib))
		answer := make(chan struct{})
		slow.SetBefore(func(f string) {
			if f == "cuMemUnmap" {
				<-answer
			}
		})
		begun := time.Now()
		_, err = s.Alloc(3 * gib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		assert.InDelta(t, 1, time.Since(begun).Seconds(), 0.1)
		close(answer)
		synctest.Wait()
		freeAll(t, must(t, s, 3*gib))
		require.NoError(t, d.Close())
		require.NoError(t, h.Close())
	})
}
