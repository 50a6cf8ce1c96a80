package host

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// composition is an allocator to which the promises of the interface are put.
type composition struct {
	name   string
	kind   Kind
	zeroed bool // every block is zero
	make   func(t *testing.T) Allocator
}

// must is a constructor's value.
func must[A any](tb testing.TB) func(A, error) A {
	tb.Helper()
	return func(a A, err error) A {
		tb.Helper()
		require.NoError(tb, err)
		return a
	}
}

// sources are the allocators that make memory.
func sources() []composition {
	return []composition{
		{name: "aligned", kind: Pageable, zeroed: true, make: func(*testing.T) Allocator { return NewAligned() }},
		{name: "page-locked", kind: PageLocked, make: func(t *testing.T) Allocator {
			t.Helper()
			r := newRig(t)
			t.Cleanup(func() { assert.NoError(t, r.device.Close()) })
			source := must[*PageLockedMemory](t)(PageLockedSource(r.device))
			source.memory = dirty{source.memory}
			return source
		}},
		{name: "stream", kind: Device, make: func(t *testing.T) Allocator {
			t.Helper()
			return must[*StreamMemory](t)(OfStream(vramStream(t)))
		}},
	}
}

// dirty is a driver whose page-locked memory has been used.
type dirty struct{ cudadrv.HostMemory }

func (d dirty) MemHostAlloc(byteCount int64) ([]byte, error) {
	memory, err := d.HostMemory.MemHostAlloc(byteCount)
	copy(memory, bytes.Repeat([]byte{0xa5}, len(memory)))
	return memory, err
}

// wrappers make one allocator of another.
func wrappers() map[string]func(t *testing.T, inner Allocator) Allocator {
	return map[string]func(t *testing.T, inner Allocator) Allocator{
		"limited": func(t *testing.T, inner Allocator) Allocator {
			t.Helper()
			return must[*Limit](t)(Limited(inner, Bounds{Bytes: 1 << 40, Blocks: 1 << 20}))
		},
		"tracked": func(t *testing.T, inner Allocator) Allocator { t.Helper(); return must[*Track](t)(Tracked(inner)) },
		"logged": func(t *testing.T, inner Allocator) Allocator {
			t.Helper()
			return must[*Log](t)(Logged(inner, slog.New(slog.DiscardHandler)))
		},
		"zeroed": func(t *testing.T, inner Allocator) Allocator { t.Helper(); return must[*Zero](t)(Zeroed(inner)) },
		"pooled": func(t *testing.T, inner Allocator) Allocator {
			t.Helper()
			cfg := PoolConfig{KeepBytes: 1 << 20}
			if inner.Kind() == PageLocked {
				r := newRig(t)
				t.Cleanup(func() { assert.NoError(t, r.device.Close()) })
				cfg.Device = r.device // no uses are announced
			}
			return must[*Pool](t)(Pooled(inner, cfg))
		},
	}
}

// compositions are the sources, each within each wrapper, and each within each two of them.
func compositions() []composition {
	all := sources()
	layer := sources()
	for range 2 {
		var next []composition
		for _, c := range layer {
			for name, wrap := range wrappers() {
				next = append(next, composition{
					name: name + "(" + c.name + ")", kind: c.kind, zeroed: name == "zeroed" || c.zeroed && name != "pooled",
					make: func(t *testing.T) Allocator { t.Helper(); return wrap(t, c.make(t)) },
				})
			}
		}
		all = append(all, next...)
		layer = next
	}
	return all
}

// forAll puts a promise to every composition.
func forAll(t *testing.T, promise func(t *testing.T, c composition, a Allocator)) {
	t.Helper()
	for _, c := range compositions() {
		t.Run(c.name, func(t *testing.T) { promise(t, c, c.make(t)) })
	}
}

// Blocks are as long and aligned as requested, of the allocator's kind, and do not overlap.
func TestBlocksAreAsRequested(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, c composition, a Allocator) {
		t.Helper()
		assert.Equal(t, c.kind, a.Kind())
		var live []Block
		for i, length := range []int64{1, 7, 64, 65, 4096, 5000, 100_000} {
			for _, align := range []int64{0, 1, 8, 64, 4096, 1 << 16, MaxAlign} {
				b := alloc(t, a, length, align)
				assert.Equal(t, length, b.Len())
				assert.Equal(t, c.kind, b.Kind())
				assert.True(t, b.Live())
				assert.Zero(t, lead(address(b), align), "%d aligned to %d", length, align)
				if c.kind == Device {
					assert.Nil(t, b.Bytes())
					assert.NotZero(t, b.Ptr())
				} else {
					require.Len(t, b.Bytes(), int(length))
					assert.Equal(t, c.kind == PageLocked, b.Ptr() != 0)
					b.Bytes()[0], b.Bytes()[length-1] = byte(i), byte(i)
				}
				live = append(live, b)
				if len(live)%3 == 0 {
					free(t, live[0])
					live = live[1:]
				}
			}
		}
		for i, b := range live {
			for _, other := range live[i+1:] {
				assert.False(t, overlap(b, other))
			}
		}
		for _, b := range live {
			free(t, b)
		}
		require.NoError(t, a.Close(t.Context()))
	})
}

func address(b Block) uint64 { return b.slot.address() + uint64(b.slot.offset) }

func overlap(a, b Block) bool {
	from, other := address(a), address(b)
	return from < other+uint64(b.Len()) && other < from+uint64(a.Len())
}

// A size of 0 is valid everywhere, and counted nowhere.
func TestNoBytes(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, _ composition, a Allocator) {
		t.Helper()
		free(t, alloc(t, a, 64, 0)) // a cache has memory
		for _, request := range []func(bytes, align int64) (Block, error){a.Alloc, a.AllocZeroed} {
			b, err := request(0, 64)
			require.NoError(t, err)
			assert.Equal(t, Block{}, b)
			assert.Empty(t, b.Bytes())
			assert.Zero(t, b.Ptr())
			assert.Zero(t, b.Len())
			require.NoError(t, b.Use(7))
			free(t, b)
			free(t, b)
			require.NoError(t, a.Free(b))
			assert.Zero(t, a.Stats().LiveBlocks)
		}
		require.NoError(t, a.Close(t.Context()))
	})
}

// Requests that cannot be are refused by type and change no books.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, _ composition, a Allocator) {
		t.Helper()
		for _, request := range []func(bytes, align int64) (Block, error){a.Alloc, a.AllocZeroed} {
			for _, bytes := range []int64{-1, math.MinInt64} {
				_, err := request(bytes, 0)
				require.ErrorIs(t, err, ErrNegative)
				var size *SizeError
				require.ErrorAs(t, err, &size)
				assert.Equal(t, bytes, size.RequestedBytes)
			}
			for _, bytes := range []int64{maxBytes + 1, math.MaxInt64} {
				_, err := request(bytes, 0)
				require.ErrorIs(t, err, ErrTooLarge)
			}
			for _, align := range []int64{-1, 3, 48, 2 * MaxAlign, math.MinInt64, math.MaxInt64} {
				for _, bytes := range []int64{0, 1} {
					_, err := request(bytes, align)
					var refused *AlignError
					require.ErrorAs(t, err, &refused)
					assert.Equal(t, align, refused.Align)
				}
			}
		}
		assert.Zero(t, a.Stats().LiveBlocks)
		assert.Zero(t, a.Stats().LiveBytes)
		require.NoError(t, a.Close(t.Context()))
	})
}

// Of several frees of a block one succeeds; later ones are refused also when the memory is another
// block's.
func TestOneFreeSucceeds(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, _ composition, a Allocator) {
		t.Helper()
		b := alloc(t, a, 100, 0)
		stale := b
		free(t, b)
		require.ErrorIs(t, stale.Free(), ErrDoubleFree)
		assert.False(t, stale.Live())
		assert.Nil(t, stale.Bytes())
		require.ErrorIs(t, stale.Use(1), ErrNotLive)
		require.ErrorContains(t, stale.Use(1), "Block.Use of a buffer of ")
		next := alloc(t, a, 100, 0)
		require.ErrorIs(t, stale.Free(), ErrBadFree)
		assert.True(t, next.Live())
		free(t, next)
		err := stale.Free()
		require.ErrorIs(t, err, ErrBadFree)
		if next.slot == stale.slot {
			require.ErrorIs(t, err, ErrStale)
		}
		require.NoError(t, a.Close(t.Context()))
	})
}

// Of frees at once exactly one succeeds.
func TestRacingFrees(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, _ composition, a Allocator) {
		t.Helper()
		for range 20 {
			b := alloc(t, a, 100, 0)
			var group sync.WaitGroup
			succeeded := make(chan struct{}, 4)
			for range cap(succeeded) {
				group.Go(func() {
					if err := b.Free(); err == nil {
						succeeded <- struct{}{}
					} else {
						assert.ErrorIs(t, err, ErrBadFree)
					}
				})
			}
			group.Wait()
			assert.Len(t, succeeded, 1)
		}
		assert.Zero(t, a.Stats().LiveBlocks)
		require.NoError(t, a.Close(t.Context()))
	})
}

// A block goes back only to the allocator that owns it.
func TestForeignBlocks(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, _ composition, a Allocator) {
		t.Helper()
		other := NewAligned()
		strange := alloc(t, other, 10, 0)
		require.ErrorIs(t, a.Free(strange), ErrForeign)
		b := alloc(t, a, 10, 0)
		require.ErrorIs(t, other.Free(b), ErrForeign)
		if inner := insideOf(a); inner != nil {
			require.ErrorIs(t, inner.Free(b), ErrForeign, "past the wrapper")
		}
		assert.True(t, b.Live())
		free(t, b)
		free(t, strange)
		require.NoError(t, a.Close(t.Context()))
	})
}

func insideOf(a Allocator) Allocator {
	switch a := a.(type) {
	case *Pool:
		return a.inner
	case *Limit:
		return a.inner
	case *Track:
		return a.inner
	case *Log:
		return a.inner
	case *Zero:
		return a.inner
	}
	return nil
}

// AllocZeroed gives zeros, also in memory that was used, and so does Alloc of a Zero.
func TestZeros(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, c composition, a Allocator) {
		t.Helper()
		requests := []func(length, align int64) (Block, error){a.AllocZeroed}
		if c.zeroed {
			requests = append(requests, a.Alloc)
		}
		for range 3 {
			for _, request := range requests {
				b, err := request(5000, 0)
				require.NoError(t, err)
				memory := contents(t, a, b)
				require.Equal(t, 5000, bytes.Count(memory, []byte{0}))
				fill(t, a, b, 0xff)
				free(t, b)
			}
		}
		require.NoError(t, a.Close(t.Context()))
	})
}

// streamOf is the stream whose memory an allocator has, and its device.
func streamOf(t *testing.T, a Allocator) (*vram.Stream, cudadrv.HostMemory, cudadrv.Device) {
	t.Helper()
	for inner := insideOf(a); inner != nil; inner = insideOf(a) {
		a = inner
	}
	s := a.(*StreamMemory).stream
	work, err := streams.NewSubmitter(s)
	require.NoError(t, err)
	return s, work.Device().(cudadrv.HostMemory), work.Device()
}

// contents are the bytes of a block.
func contents(t *testing.T, a Allocator, b Block) []byte {
	t.Helper()
	if a.Kind() != Device {
		return b.Bytes()
	}
	s, memory, device := streamOf(t, a)
	all := make([]byte, b.Len())
	require.NoError(t, memory.MemcpyDtoHAsync(all, b.Ptr(), s.Handle()))
	require.NoError(t, device.StreamSynchronize(s.Handle()))
	return all
}

// fill sets the bytes of a block.
func fill(t *testing.T, a Allocator, b Block, value byte) {
	t.Helper()
	if a.Kind() != Device {
		copy(b.Bytes(), bytes.Repeat([]byte{value}, int(b.Len())))
		return
	}
	s, _, device := streamOf(t, a)
	require.NoError(t, device.MemsetD8Async(b.Ptr(), value, b.Len(), s.Handle()))
}

// A cache on a cache asks it for zeros: the inner one may have memory that was used.
func TestZerosOfACacheOnACache(t *testing.T) {
	t.Parallel()
	inner := must[*Pool](t)(Pooled(NewAligned(), PoolConfig{KeepBytes: 1 << 20}))
	outer := must[*Pool](t)(Pooled(inner, PoolConfig{}))
	used := alloc(t, inner, 4096, 0)
	copy(used.Bytes(), bytes.Repeat([]byte{0xff}, 4096))
	free(t, used)
	b, err := outer.AllocZeroed(4096, 0)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), inner.Stats().Allocs)
	assert.Equal(t, uint64(1), inner.Stats().Misses, "memory that was used")
	assert.Equal(t, 4096, bytes.Count(b.Bytes(), []byte{0}))
	free(t, b)
	require.NoError(t, outer.Close(t.Context()))
	require.NoError(t, inner.Close(t.Context()))
}

// The live blocks are counted, by each wrapper, and refused calls count nowhere.
func TestLiveBlocksAreCounted(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, _ composition, a Allocator) {
		t.Helper()
		var live []Block
		for i := range 10 {
			live = append(live, alloc(t, a, 4096, 0))
			_, err := a.Alloc(-1, 0)
			require.Error(t, err)
			s := a.Stats()
			assert.EqualValues(t, i+1, s.LiveBlocks)
			assert.EqualValues(t, (i+1)*4096, s.LiveBytes)
		}
		for i, b := range live {
			free(t, b)
			require.Error(t, b.Free())
			assert.EqualValues(t, 9-i, a.Stats().LiveBlocks)
			assert.EqualValues(t, (9-i)*4096, a.Stats().LiveBytes)
		}
		assert.EqualValues(t, 10, a.Stats().Allocs)
		assert.EqualValues(t, 10, a.Stats().Frees)
		require.NoError(t, a.Close(t.Context()))
	})
}

// Close refuses requests and tells of live blocks, which stay valid; a further Close finds them
// gone.
func TestClose(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, c composition, a Allocator) {
		t.Helper()
		b, freed := alloc(t, a, 4096, 0), alloc(t, a, 4096, 0)
		free(t, freed)
		var left *LeakError
		for range 2 {
			err := a.Close(t.Context())
			require.ErrorIs(t, err, ErrLeak)
			require.ErrorAs(t, err, &left)
			assert.Equal(t, LeakError{Kind: c.kind, Blocks: 1, Bytes: 4096}, *left)
			require.EqualError(t, err, left.Error(), "it is told once")
		}
		for _, bytes := range []int64{0, 1, 4096} {
			_, err := a.Alloc(bytes, 0)
			require.ErrorIs(t, err, ErrClosed, bytes)
			_, err = a.AllocZeroed(bytes, 0)
			require.ErrorIs(t, err, ErrClosed, bytes)
		}
		if c.kind != Device {
			b.Bytes()[4095] = 1
		}
		free(t, b)
		require.NoError(t, a.Close(t.Context()))
		require.NoError(t, a.Close(t.Context()))
		require.ErrorIs(t, a.Close(nil), ErrNilContext) //nolint:staticcheck // a nil context is refused
	})
}

// Goroutines that allocate, write, read and free at once never share memory.
func TestGoroutinesShareNoMemory(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, c composition, a Allocator) {
		t.Helper()
		var group sync.WaitGroup
		for g := range 4 {
			group.Go(func() {
				for i := range 40 {
					b, err := a.Alloc(int64(1+(g+i)%5*1500), 0)
					if !assert.NoError(t, err) {
						return
					}
					if c.kind != Device {
						at := (*int64)(nil)
						if b.Len() >= 8 {
							at = (*int64)(unsafe.Pointer(unsafe.SliceData(b.Bytes()))) // aligned to 8 at least
							*at = int64(g<<32 + i)
							assert.Equal(t, int64(g<<32+i), *at)
						}
					}
					assert.NoError(t, b.Free())
				}
			})
		}
		group.Wait()
		assert.Zero(t, a.Stats().LiveBlocks)
		require.NoError(t, a.Close(t.Context()))
	})
}

// An allocator that was made without its constructor refuses everything, and so does nil.
func TestZeroValuesAreNotOpen(t *testing.T) {
	t.Parallel()
	for _, a := range []Allocator{&Limit{}, &Track{}, &Log{}, &Log{log: slog.New(slog.DiscardHandler)}, &Zero{}, &Pool{}, &StreamMemory{}, &PageLockedMemory{}} {
		_, err := a.Alloc(1, 0)
		require.ErrorIs(t, err, vram.ErrNotOpen, "%T", a)
	}
	block, err := NewAligned().Alloc(64, 0)
	require.NoError(t, err)
	for _, a := range []Allocator{
		(*Limit)(nil), (*Track)(nil), (*Log)(nil), (*Zero)(nil), (*Pool)(nil), (*StreamMemory)(nil), (*PageLockedMemory)(nil), (*Aligned)(nil),
	} {
		_, err := a.Alloc(1, 0)
		require.ErrorIs(t, err, vram.ErrNotOpen, "%T", a)
		_, err = a.AllocZeroed(1, 0)
		require.ErrorIs(t, err, vram.ErrNotOpen, "%T", a)
		require.ErrorIs(t, a.Free(block), vram.ErrNotOpen, "%T", a)
		require.ErrorIs(t, a.Close(t.Context()), vram.ErrNotOpen, "%T", a)
		assert.Nil(t, a.Owner(), "%T", a)
		assert.Zero(t, a.Stats(), "%T", a)
	}
	require.NoError(t, block.Free())
	for _, a := range []Trimmer{
		(*Limit)(nil), (*Track)(nil), (*Log)(nil), (*Zero)(nil), (*Pool)(nil), &Limit{}, &Track{}, &Log{}, &Zero{}, &Pool{},
	} {
		_, err = a.Trim(context.Background())
		require.ErrorIs(t, err, vram.ErrNotOpen, "%T", a)
	}
}
