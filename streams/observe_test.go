package streams

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// diary records an observer's calls.
type diary struct {
	mu                sync.Mutex
	allocated, freed  []BufferEvent
	live              map[cudadrv.Ptr]int64
	overlaps, strange int
}

func (d *diary) observer() Observer {
	d.live = map[cudadrv.Ptr]int64{}
	return Observer{
		Allocated: func(e BufferEvent) {
			d.mu.Lock()
			defer d.mu.Unlock()
			for p, bytes := range d.live {
				if e.Ptr < p+cudadrv.Ptr(bytes) && p < e.Ptr+cudadrv.Ptr(e.Bytes) {
					d.overlaps++
				}
			}
			d.live[e.Ptr] = e.Bytes
			d.allocated = append(d.allocated, e)
		},
		Freed: func(e BufferEvent) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if bytes, ok := d.live[e.Ptr]; !ok || bytes != e.Bytes {
				d.strange++
			}
			delete(d.live, e.Ptr)
			d.freed = append(d.freed, e)
		},
	}
}

// watched opens a stream whose observer is the diary.
func (r *rig) watched(d *diary) *Stream {
	r.t.Helper()
	h, err := r.device.StreamCreate()
	require.NoError(r.t, err)
	observers := new(Observers)
	observer := d.observer()
	observers.Store(&observer)
	s, _, err := Open(Config{
		ID: uint32(len(r.streams) + 1), Pool: r.pool, Device: r.device, Fences: r.fences, Handle: h,
		Limit: &r.limit, Share: magazine.Everything, Observers: observers,
	})
	require.NoError(r.t, err)
	r.streams = append(r.streams, s)
	return s
}

// Every way to a buffer, and every way back, is reported once, with size, tag and place.
func TestEveryBufferIsTold(t *testing.T) {
	ctx := context.Background()
	for name, way := range map[string]func(t *testing.T, s *Stream) []Buffer{
		"Alloc": func(t *testing.T, s *Stream) []Buffer {
			t.Helper()
			b, err := s.Alloc(5000)
			require.NoError(t, err)
			return []Buffer{b}
		},
		"Alloc of nothing": func(t *testing.T, s *Stream) []Buffer {
			t.Helper()
			b, err := s.Alloc(0)
			require.NoError(t, err)
			return []Buffer{b}
		},
		"AllocFor": func(t *testing.T, s *Stream) []Buffer {
			t.Helper()
			b, err := s.AllocFor(ctx, Request{Bytes: 1 << 20, Align: 4096, Zero: true, Tag: "weights"})
			require.NoError(t, err)
			return []Buffer{b}
		},
		"AllocAsync that waits": func(t *testing.T, s *Stream) []Buffer {
			t.Helper()
			b, err := s.AllocAsync(ctx, Request{Bytes: 64 << 20, Tag: "weights"}).Await(ctx)
			require.NoError(t, err)
			return []Buffer{b}
		},
		"AllocBatch": func(t *testing.T, s *Stream) []Buffer {
			t.Helper()
			dst := make([]Buffer, 3)
			require.NoError(t, s.AllocBatch(dst, []int64{512, 5 << 20, 512}))
			return dst
		},
		"AllocBatchAsync": func(t *testing.T, s *Stream) []Buffer {
			t.Helper()
			b, err := s.AllocBatchAsync(ctx, []int64{512, 5 << 20, 512}).Await(ctx)
			require.NoError(t, err)
			return b.Buffers()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 256*mib)
			d := &diary{}
			s := r.watched(d)
			for range 3 { // cold, then warm
				d.allocated, d.freed = nil, nil
				all := way(t, s)
				require.Len(t, d.allocated, len(all))
				assert.Empty(t, d.freed)
				for i, b := range all {
					at := slices.IndexFunc(d.allocated, func(e BufferEvent) bool { return e.Ptr == b.Ptr() })
					require.GreaterOrEqual(t, at, 0)
					e := d.allocated[at]
					assert.Equal(t, b.Bytes(), e.Bytes, "buffer %d", i)
					assert.Equal(t, s.Handle(), e.Handle)
					assert.Equal(t, s.ID(), e.Stream)
					assert.Contains(t, e.Place.String(), "TestEveryBufferIsTold")
					if strings.Contains(name, "For") || strings.Contains(name, "waits") {
						assert.Equal(t, "weights", e.Tag)
					}
				}
				list := control(s).LiveBuffers()
				require.Len(t, list, len(all))
				assert.Contains(t, list[0].Allocated.String(), "TestEveryBufferIsTold")
				assert.Equal(t, d.allocated[0].Tag, list[0].Tag)
				if len(all) > 1 {
					require.NoError(t, s.FreeBatch(all))
				} else {
					require.NoError(t, all[0].Free())
				}
				require.Len(t, d.freed, len(all))
				assert.Contains(t, d.freed[0].Place.String(), "TestEveryBufferIsTold")
				assert.Empty(t, d.live)
			}
			assert.Zero(t, d.strange)
			assert.Zero(t, d.overlaps)
			require.NoError(t, control(s).Check(ctx))
		})
	}
}

// A request that is cancelled when its buffer is there leaves no buffer that is reported as live.
func TestCancelledRequestsAreTold(t *testing.T) {
	r := newRig(t, 256*mib)
	d := &diary{}
	s := r.watched(d)
	for range 20 {
		f := s.AllocAsync(context.Background(), Request{Bytes: 32 << 20})
		if b, err := f.Await(context.Background()); !f.Cancel() && err == nil {
			require.NoError(t, b.Free())
		}
	}
	dst := make([]Buffer, 2)
	require.Error(t, s.AllocBatch(dst, []int64{200 << 20, 200 << 20}))
	assert.Empty(t, d.live)
	assert.Len(t, d.freed, len(d.allocated))
}

// A refused free names the places of its buffer, also when the memory has been reused.
func TestARefusedFreeNamesThePlaces(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.watched(&diary{})
	b, err := s.Alloc(512)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	for later := range 4 {
		err := b.Free()
		require.ErrorIs(t, err, ErrBadFree)
		if later == 0 {
			require.ErrorIs(t, err, ErrDoubleFree)
		} else {
			require.ErrorIs(t, err, ErrStale)
		}
		var refused *FreeError
		require.ErrorAs(t, err, &refused)
		assert.Contains(t, refused.Allocated.String(), "TestARefusedFreeNamesThePlaces")
		assert.Contains(t, refused.Freed.String(), "TestARefusedFreeNamesThePlaces")
		assert.NotEqual(t, refused.Allocated.String(), refused.Freed.String())
		assert.Contains(t, err.Error(), "(observe_test.go:")
		again, err := s.Alloc(512)
		require.NoError(t, err)
		require.Equal(t, b.Ptr(), again.Ptr())
		require.NoError(t, again.Free())
	}
	for range 10 {
		again, err := s.Alloc(512)
		require.NoError(t, err)
		require.NoError(t, again.Free())
	}
	err = b.Free()
	require.ErrorIs(t, err, ErrStale)
	var refused *FreeError
	assert.NotErrorAs(t, err, &refused, "too long ago")
}

// A watched stream serves small requests from the same addresses as one that is not.
func TestWatchingDoesNotMoveBuffers(t *testing.T) {
	addresses := func(s *Stream) (all []cudadrv.Ptr) {
		var held []Buffer
		for i := range 400 {
			b, err := s.Alloc(int64(i*7919%20_000) + 1)
			require.NoError(t, err)
			held = append(held, b)
			all = append(all, b.Ptr())
			for len(held) > i*31%40+1 {
				at := i * 17 % len(held)
				require.NoError(t, held[at].Free())
				held = slices.Delete(held, at, at+1)
			}
		}
		return all
	}
	plain, watched := newRig(t, 64*mib), newRig(t, 64*mib)
	assert.Equal(t, addresses(plain.stream(core.Budget{})), addresses(watched.watched(&diary{})))
}

// The buffers of goroutines that share a stream are reported in an order in which no two overlap.
func TestTellingIsInOrder(t *testing.T) {
	r := newRig(t, 128*mib)
	d := &diary{}
	s := r.watched(d)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			var held []Buffer
			for i := range 300 {
				if b, err := s.Alloc(int64((i*7919+g*104729)%(1<<17) + 1)); assert.NoError(t, err) {
					held = append(held, b)
				}
				if len(held) > 8 {
					assert.NoError(t, held[0].Free())
					held = held[1:]
				}
				runtime.Gosched()
			}
			assert.NoError(t, freeBatch(held))
		})
	}
	all.Wait()
	assert.Zero(t, d.overlaps)
	assert.Zero(t, d.strange)
	assert.Empty(t, d.live)
	assert.Len(t, d.allocated, 1200)
	require.NoError(t, control(s).Check(context.Background()))
}

// An observer observes if any of its functions is set that is called without Device.Observe: each alone.
func TestEachFunctionOfAnObserverObserves(t *testing.T) {
	t.Parallel()
	assert.False(t, (*Observer)(nil).Observes())
	assert.False(t, new(Observer).Observes())
	kind := reflect.TypeFor[Observer]()
	for i := range kind.NumField() {
		o := new(Observer)
		field := reflect.ValueOf(o).Elem().Field(i)
		field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { return nil }))
		assert.Equal(t, kind.Field(i).Name != "Found", o.Observes(), kind.Field(i).Name)
	}
}
