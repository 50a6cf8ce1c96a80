package acceptance_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

// scarcity is a device on which the driver has no memory left for a request, while the process has
// enough that is free.
type scarcity struct {
	*house
	asks      *vram.Stream // whose request it is
	live      []vram.Buffer
	segments  vram.Segments
	footprint vram.Footprint
}

// hold has a stream take buffers and free all but every keep-th of them.
func (s *scarcity) hold(on *vram.Stream, count, keep int, bytes int64) {
	s.t.Helper()
	all := make([]vram.Buffer, count)
	for i := range all {
		all[i] = must(s.t, on, bytes)
	}
	for i, b := range all {
		if keep > 0 && i%keep == 0 {
			s.live = append(s.live, b)
		} else {
			freeAll(s.t, b)
		}
	}
}

const littleOfMany = "many streams have cached a little"

// scarcities are ways in which memory is free that the driver does not have: 1 GiB and more of it,
// with 2 GiB in all.
func scarcities() map[string]func(s *scarcity) {
	return map[string]func(s *scarcity){
		"another process has a part": func(s *scarcity) {
			s.faults.SetCapacity(2 * gib)
			s.hold(s.stream(), 16, 3, 128*mib)
			s.asks = s.stream()
		},
		"another process takes a part": func(s *scarcity) {
			s.hold(s.stream(), 16, 3, 128*mib)
			s.asks = s.stream()
			s.faults.SetCapacity(1920 * mib) // less than is held
		},
		"another process takes a part and leaves": func(s *scarcity) {
			s.faults.SetCapacity(gib)
			s.hold(s.stream(), 7, 1, 128*mib)
			s.asks = s.stream()
			_, err := s.asks.Alloc(gib)
			require.ErrorIs(s.t, err, vram.ErrOutOfMemory)
			s.faults.SetCapacity(2 * gib)
		},
		littleOfMany: func(s *scarcity) {
			s.faults.SetCapacity(2 * gib)
			if s.segments == vram.SegmentsPlain { // each buffer has a segment of its own, which nothing live keeps
				require.NoError(s.t, s.Reconfigure(vram.Settings{Tuning: &vram.Tuning{SegmentBytes: 64 * mib}}))
			}
			for range 16 {
				s.hold(s.stream(), 2, 2, 64*mib)
			}
			s.asks = s.stream()
		},
		"a fence has yet to pass": func(s *scarcity) {
			s.faults.SetCapacity(2 * gib)
			other := s.stream()
			all := make([]vram.Buffer, 16)
			for i := range all {
				all[i] = must(s.t, other, 128*mib)
			}
			require.NoError(s.t, s.gpu.Launch(other.Handle(), time.Second))
			freeAll(s.t, all[1:12]...)
			s.live = append(all[12:], all[0])
			s.asks = s.stream()
		},
		"another stream's use has yet to end": func(s *scarcity) {
			s.faults.SetCapacity(2 * gib)
			other, user := s.stream(), s.stream()
			all := make([]vram.Buffer, 16)
			for i := range all {
				all[i] = must(s.t, other, 128*mib)
				require.NoError(s.t, all[i].RecordStream(user))
			}
			require.NoError(s.t, s.gpu.Launch(user.Handle(), time.Second))
			freeAll(s.t, all[1:12]...)
			s.live = append(all[12:], all[0])
			s.asks = s.stream()
		},
		"memory is in pieces": func(s *scarcity) {
			s.faults.SetCapacity(2 * gib)
			bytes := 6 * mib
			if s.segments == vram.SegmentsPlain || s.footprint != vram.Lean {
				bytes = 256 * mib // a handle, or a segment, of its own
			}
			s.hold(s.stream(), int(2*gib/bytes), 3, bytes)
			s.asks = s.stream()
		},
		"its own stream has it": func(s *scarcity) {
			s.faults.SetCapacity(2 * gib)
			s.asks = s.stream()
			s.hold(s.asks, 16, 3, 128*mib)
		},
	}
}

// forms are the ways to ask for so many bytes.
func forms() map[string]func(s *scarcity, bytes int64) ([]vram.Buffer, error) {
	single := func(b vram.Buffer, err error) ([]vram.Buffer, error) { return []vram.Buffer{b}, err }
	return map[string]func(s *scarcity, bytes int64) ([]vram.Buffer, error){
		"single": func(s *scarcity, bytes int64) ([]vram.Buffer, error) { return single(s.asks.Alloc(bytes)) },
		"async": func(s *scarcity, bytes int64) ([]vram.Buffer, error) {
			return single(s.asks.AllocAsync(s.t.Context(), vram.Request{Bytes: bytes}).Await(s.t.Context()))
		},
		"aligned": func(s *scarcity, bytes int64) ([]vram.Buffer, error) {
			return single(s.asks.AllocFor(s.t.Context(), vram.Request{Bytes: bytes, Align: 2 * mib}))
		},
		"waiting": func(s *scarcity, bytes int64) ([]vram.Buffer, error) {
			ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
			defer cancel()
			return single(s.asks.AllocFor(ctx, vram.Request{Bytes: bytes, Wait: true}))
		},
		"batch": func(s *scarcity, bytes int64) ([]vram.Buffer, error) {
			all := make([]vram.Buffer, 4)
			return all, s.asks.AllocBatch(all, []int64{bytes / 4, bytes / 4, bytes / 4, bytes / 4})
		},
		"waiting batch": func(s *scarcity, bytes int64) ([]vram.Buffer, error) {
			ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
			defer cancel()
			b, err := s.asks.AllocBatchFor(ctx, vram.BatchRequest{Bytes: []int64{bytes / 2, bytes / 2}, Wait: true})
			return b.Buffers(), err
		},
	}
}

// No request is refused while memory that would serve it is free in the process, whether the driver
// or the limit refuses.
func TestNoMemoryOfTheDriversButOurOwn(t *testing.T) {
	scarce, asks := scarcities(), forms()
	for i, footprint := range []vram.Footprint{vram.Lean, vram.Balanced, vram.Fast} {
		for j, segments := range []vram.Segments{vram.SegmentsVMM, vram.SegmentsPlain} {
			for k, why := range slices.Sorted(maps.Keys(scarce)) {
				if footprint == vram.Fast && segments == vram.SegmentsVMM && why == littleOfMany {
					continue // Fast's handles have up to 256 MiB, and one on which a buffer lies stays where it is.
				}
				for l, how := range slices.Sorted(maps.Keys(asks)) {
					if raceDetector && testing.Short() && (k+l)%6 != 2*i+j {
						continue // each scarcity and form, in one configuration
					}
					t.Run(fmt.Sprintf("%s/%v/%v/%s", why, footprint, segments, how), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							h := openHouse(t, vram.Config{Footprint: footprint, Segments: segments}, sim.Config{TotalBytes: 4 * gib})
							s := &scarcity{house: h, segments: segments, footprint: footprint}
							scarce[why](s)
							got, err := asks[how](s, gib)
							if !assert.NoError(t, err) {
								freeAll(t, s.live...)
								return
							}
							freeAll(t, got...)
							freeAll(t, s.live...)
							h.addsUp()
						})
					})
				}
			}
		}
	}
}

// Where the driver refuses, as much of the GPU as the error says that others have to give back is
// enough, and a page less is not.
func TestWhatOthersHaveToGiveBack(t *testing.T) {
	for _, segments := range []vram.Segments{vram.SegmentsVMM, vram.SegmentsPlain} {
		t.Run(segments.String(), func(t *testing.T) {
			h := openHouse(t, vram.Config{Footprint: vram.Lean, Segments: segments}, sim.Config{TotalBytes: 4 * gib})
			h.faults.SetCapacity(2 * gib)
			a, b := h.stream(), h.stream()
			live := must(t, a, 640*mib)
			freeAll(t, must(t, a, 100*mib))
			_, err := b.Alloc(1536 * mib)
			var short *vram.OutOfMemoryError
			require.ErrorAs(t, err, &short)
			assert.Equal(t, 2*gib, short.DriverBytes)
			require.NotEmpty(t, short.Remedies())
			last := short.Remedies()[len(short.Remedies())-1]
			assert.Equal(t, pool.FreeElsewhere, last.Kind)
			h.faults.SetCapacity(2*gib + last.Bytes - 2*mib)
			_, err = b.Alloc(1536 * mib)
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			h.faults.SetCapacity(2*gib + last.Bytes)
			freeAll(t, live, must(t, b, 1536*mib))
			h.addsUp()
		})
	}
}
