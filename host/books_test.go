package host

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// named are the allocators by name, each with its device.
func named() []composition {
	byName := func(name string) func(t *testing.T) Allocator {
		return func(t *testing.T) Allocator {
			t.Helper()
			return must[Allocator](t)(ByName(name, Options{Driver: sim.New(sim.Config{Bytes: true, TotalBytes: 1 << 30}), KeepBytes: 1 << 20}))
		}
	}
	return []composition{
		{name: "cpu", kind: Pageable, make: byName("cpu")},
		{name: "cuda:0", kind: Device, make: byName("cuda:0")},
		{name: "pooled cuda:0/pinned", kind: PageLocked, make: byName("cuda:0/pinned")},
	}
}

// books are the figures that an allocator should have.
type books struct {
	Stats

	live []Block
}

func (b *books) allocated(block Block) {
	b.live = append(b.live, block)
	b.Allocs++
	b.LiveBlocks++
	b.LiveBytes += block.Len()
	b.PeakBlocks = max(b.PeakBlocks, b.LiveBlocks)
	b.PeakBytes = max(b.PeakBytes, b.LiveBytes)
}

func (b *books) free(i int) Block {
	block := b.live[i]
	b.live[i] = b.live[len(b.live)-1]
	b.live = b.live[:len(b.live)-1]
	b.Frees++
	b.LiveBlocks--
	b.LiveBytes -= block.Len()
	return block
}

// Random calls, some of them refused, leave the figures of each allocator as they should be. Live bytes of a pool are those of whole
// blocks, and it has no peaks.
func TestTheBooksOfEachAllocator(t *testing.T) {
	t.Parallel()
	for seed, c := range append(compositions(), named()...) {
		t.Run(c.name, func(t *testing.T) {
			a := c.make(t)
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			want := &books{}
			counts := !strings.Contains(c.name, "limited") || strings.HasPrefix(c.name, "tracked") // a Limit does not ask inside
			for range 150 {
				request := a.Alloc
				if random.IntN(2) == 0 {
					request = a.AllocZeroed
				}
				switch n := len(want.live); {
				case random.IntN(8) == 0:
					bytes, align := int64(-1), int64(0)
					switch random.IntN(3) {
					case 0:
						bytes, align = 8, 3
					case 1:
						if c.kind == Device { // its device has less
							bytes = 2 << 30
						}
					}
					_, err := request(bytes, align)
					require.Error(t, err)
					want.Refusals++
				case n > 0 && random.IntN(9) == 0:
					block := want.free(random.IntN(n))
					require.NoError(t, FreeAll(block, Block{}))
					require.ErrorIs(t, block.Free(), ErrBadFree)
				case n > 0 && random.IntN(2) == 0:
					require.NoError(t, a.Free(want.free(random.IntN(n))))
				default:
					block, err := request(1+random.Int64N(5000), int64(1)<<random.IntN(13))
					require.NoError(t, err)
					want.allocated(block)
				}
				got := a.Stats()
				require.Equal(t, []any{want.LiveBlocks, want.Allocs, want.Frees}, []any{got.LiveBlocks, got.Allocs, got.Frees})
				if counts {
					require.Equal(t, want.Refusals, got.Refusals)
				}
				if !strings.Contains(c.name, "pooled") {
					figures := []any{got.LiveBytes, got.PeakBlocks, got.PeakBytes}
					require.Equal(t, []any{want.LiveBytes, want.PeakBlocks, want.PeakBytes}, figures)
				}
			}
			for len(want.live) > 0 {
				require.NoError(t, want.free(0).Free())
			}
			require.NoError(t, a.Close(t.Context()))
		})
	}
}

// The errors of requests that no allocator serves have all numbers, and the largest request is not one of them.
func TestErrorsOfBadRequests(t *testing.T) {
	t.Parallel()
	a := must[*Limit](t)(Limited(NewAligned(), Bounds{Bytes: 1 << 20}))
	for _, bytes := range []int64{-1, maxBytes + 1} {
		_, err := a.Alloc(bytes, 0)
		var size *SizeError
		require.ErrorAs(t, err, &size)
		assert.Equal(t, SizeError{RequestedBytes: bytes, LimitBytes: 1 << 40}, *size)
	}
	_, err := a.Alloc(maxBytes, 0)
	require.ErrorIs(t, err, ErrLimit)
	for _, align := range []int64{-1, 3, 2*MaxAlign + 1, 2 * MaxAlign} {
		_, err := a.Alloc(1, align)
		var refused *AlignError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, AlignError{Align: align, Limit: 2 << 20}, *refused)
	}
	b := alloc(t, a, 1, MaxAlign)
	assert.Zero(t, lead(address(b), 2<<20))
	free(t, b)
}

// A free that cannot tell whether a stream is captured has the driver's error, and the block lives.
func TestAStreamThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	s := r.stream()
	b := alloc(t, p, 100, 0)
	require.NoError(t, b.Use(s))
	for result, isCaptured := range map[cudadrv.Result]bool{cudadrv.Unknown: false, cudadrv.CaptureImplicit: true} {
		r.fail("cuStreamIsCapturing", 1, 1, result)
		err := b.Free()
		require.ErrorIs(t, err, result)
		var captured *CaptureError
		require.Equal(t, isCaptured, errors.As(err, &captured))
		if isCaptured {
			assert.Equal(t, s, captured.Stream)
		}
		assert.True(t, b.Live())
		r.faults.Clear()
	}
	free(t, b)
	r.end(p)
}

// figured is an allocator with figures of its own.
type figured struct {
	Allocator
	owner *Owner
	stats Stats
}

func (f *figured) Owner() *Owner { return f.owner }
func (f *figured) Stats() Stats  { return f.stats }

// A wrapper has all figures of the allocator inside; a Track those that it does not count.
func TestWrappersPassFiguresOn(t *testing.T) {
	t.Parallel()
	f := &figured{Allocator: NewAligned()}
	f.owner = NewOwner(f)
	figures := reflect.ValueOf(&f.stats).Elem()
	for i := range figures.NumField() {
		if field := figures.Field(i); field.CanInt() {
			field.SetInt(int64(i) + 1)
		} else {
			field.SetUint(uint64(i) + 1) //nolint:gosec // an index
		}
	}
	for name, wrap := range wrappers() {
		want := f.stats
		switch name {
		case "pooled": // has its own
			continue
		case "tracked":
			want.LiveBlocks, want.LiveBytes, want.PeakBlocks, want.PeakBytes, want.Allocs, want.Frees, want.Refusals = 0, 0, 0, 0, 0, 0, 0
		}
		assert.Equal(t, want, wrap(t, f).Stats(), name)
	}
}

// FreeAll frees the other blocks also where one is refused, and returns the first error with that block's number.
func TestFreeAllOfSomeThatAreRefused(t *testing.T) {
	t.Parallel()
	forAll(t, func(t *testing.T, _ composition, a Allocator) {
		t.Helper()
		all := []Block{alloc(t, a, 10, 0), {}, alloc(t, a, 20, 0), alloc(t, a, 30, 0), alloc(t, a, 40, 0)}
		free(t, all[2])
		free(t, all[3])
		err := FreeAll(all...)
		require.ErrorIs(t, err, ErrDoubleFree)
		require.ErrorContains(t, err, "block 2 of 5: ")
		for _, b := range all {
			assert.False(t, b.Live())
		}
		assert.Zero(t, a.Stats().LiveBlocks)
		require.NoError(t, a.Close(t.Context()))
	})
}

// The bytes of a pool by state add up to its source's, and live bytes are whole blocks, after each call.
func TestTheBytesOfAPoolAddUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := newRig(t)
		source := must[*Track](t)(Tracked(must[*PageLockedMemory](t)(PageLockedSource(r.device))))
		p := must[*Pool](t)(Pooled(source, PoolConfig{KeepBytes: 200_000, Device: r.device}))
		random, streams := rand.New(rand.NewPCG(seed, 2)), []cudadrv.Stream{r.stream(), r.stream()}
		var live []Block
		var requested int64
		for range 100 {
			switch n := len(live); {
			case n > 0 && random.IntN(2) == 0:
				i := random.IntN(n)
				b := live[i]
				if random.IntN(2) == 0 {
					s := streams[random.IntN(2)]
					r.busy(s, time.Millisecond)
					require.NoError(t, b.Use(s))
				}
				free(t, b)
				requested -= b.Len()
				live[i] = live[n-1]
				live = live[:n-1]
			case random.IntN(10) == 0:
				r.sim.Advance(time.Millisecond)
			case random.IntN(20) == 0:
				_, err := p.Trim(t.Context())
				require.NoError(t, err)
			default:
				b := alloc(t, p, 1+random.Int64N(20_000), 0)
				requested += b.Len()
				live = append(live, b)
			}
			require.NoError(t, p.awaitReleases(t.Context()))
			s := p.Stats()
			require.Equal(t, source.Stats().LiveBytes, s.LiveBytes+s.KeptBytes+s.PendingBytes+s.ReleasingBytes)
			require.GreaterOrEqual(t, s.LiveBytes, requested)
			require.Equal(t, len(live) == 0, s.LiveBytes == 0)
			require.LessOrEqual(t, s.KeptBytes, int64(200_000))
		}
		for _, b := range live {
			free(t, b)
		}
		r.end(p)
	}
}

// A source counts a request that its driver refuses.
func TestASourceCountsRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	source := must[*PageLockedMemory](t)(PageLockedSource(r.device))
	for i, function := range []string{"cuMemHostAlloc", "cuMemHostGetDevicePointer"} {
		r.fail(function, 1, 1, cudadrv.Unknown)
		_, err := source.Alloc(100, 0)
		require.ErrorIs(t, err, cudadrv.Unknown)
		s := source.Stats()
		assert.EqualValues(t, []uint64{uint64(i) + 1, 0}, []uint64{s.Refusals, s.Allocs}) //nolint:gosec // an index
		r.faults.Clear()
	}
	r.end(source)
}

// A free records one event for each stream that was announced, in each number and order, and none for streams of the memory's earlier
// holders.
func TestAFreeRecordsOneEventForEachStream(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 20)
	streams := []cudadrv.Stream{r.stream(), r.stream(), r.stream()}
	for _, uses := range [][]int{{0}, {0, 0}, {0, 1}, {0, 1, 1, 1}, {0, 1, 0, 2, 1, 2}, {2, 1}, {}, {1}} {
		b := alloc(t, p, 100, 0)
		distinct := map[int]bool{}
		for _, i := range uses {
			require.NoError(t, b.Use(streams[i]))
			distinct[i] = true
		}
		before := r.faults.Calls("cuEventRecord")
		free(t, b)
		assert.EqualValues(t, len(distinct), r.faults.Calls("cuEventRecord")-before, "%v", uses)
		r.sim.Advance(time.Second)
		require.Equal(t, address(b), address(func() Block { c := alloc(t, p, 100, 0); free(t, c); return c }()), "it is the same memory")
	}
	r.end(p)
}

// An allocator by name closes its device once.
func TestAnAllocatorByNameClosesItsDeviceOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cuda:0", "cuda:0/pinned"} {
		faults := fault.Wrap(sim.New(sim.Config{Bytes: true}))
		a := must[Allocator](t)(ByName(name, Options{Driver: faults}))
		free(t, alloc(t, a, 100, 0))
		require.NoError(t, a.Close(t.Context()))
		calls := 0
		faults.SetBefore(func(string) { calls++ })
		require.NoError(t, a.Close(t.Context()))
		assert.Zero(t, calls, name)
	}
}

// Trim of a pool trims a pool inside, too, and counts both.
func TestTrimOfAPoolInAPool(t *testing.T) {
	t.Parallel()
	source := must[*Track](t)(Tracked(NewAligned()))
	inner := must[*Pool](t)(Pooled(source, PoolConfig{KeepBytes: 1 << 20}))
	outer := must[*Pool](t)(Pooled(inner, PoolConfig{KeepBytes: 1 << 20}))
	kept := alloc(t, inner, 5000, 0)
	free(t, alloc(t, outer, 9000, 0))
	free(t, kept)
	want := source.Stats().LiveBytes
	require.Positive(t, want)
	released, err := outer.Trim(t.Context())
	require.NoError(t, err)
	assert.GreaterOrEqual(t, released, want)
	assert.Zero(t, source.Stats().LiveBytes)
	require.NoError(t, outer.Close(t.Context()))
}
