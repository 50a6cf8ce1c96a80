package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/fence"
)

// A request that a free block serves makes no driver call, and no look at pending memory, for each alignment.
func TestAHitMakesNoDriverCall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 30)
	s := r.stream()
	r.busy(s, time.Second)
	pending := alloc(t, p, 100, 0)
	require.NoError(t, pending.Use(s))
	for _, align := range []int64{0, 64, pageBytes, 2 * pageBytes, MaxAlign} {
		for name, request := range map[string]func(bytes, align int64) (Block, error){"Alloc": p.Alloc, "AllocZeroed": p.AllocZeroed} {
			first := alloc(t, p, 5000, align)
			at := address(first)
			free(t, first)
			if pending.Live() { // the memory is pending from here on
				free(t, pending)
			}
			calls := 0
			r.faults.SetBefore(func(string) { calls++ })
			misses := p.Stats().Misses
			b, err := request(5000, align)
			r.faults.SetBefore(nil)
			require.NoError(t, err)
			assert.Equal(t, at, address(b))
			assert.Zero(t, calls, "%s aligned to %d", name, align)
			assert.Equal(t, misses, p.Stats().Misses)
			free(t, b)
		}
	}
	r.end(p)
}

// The limit in the error of a size is the longest request that is not refused for its size.
func TestTheLimitOfASize(t *testing.T) {
	t.Parallel()
	p := must[*Pool](t)(Pooled(must[*Limit](t)(Limited(NewAligned(), Bounds{Bytes: 1 << 20})), PoolConfig{}))
	for _, align := range []int64{0, 1, pageBytes, 2 * pageBytes, MaxAlign} {
		for _, request := range []func(bytes, align int64) (Block, error){p.Alloc, p.AllocZeroed} {
			_, err := request(maxBytes+1, align)
			require.ErrorIs(t, err, ErrTooLarge)
			_, err = request(maxBytes, align)
			longest := int64(maxBytes)
			var size *SizeError
			if errors.As(err, &size) {
				assert.Greater(t, align, int64(pageBytes))
				assert.Equal(t, int64(maxBytes), size.RequestedBytes)
				longest = size.LimitBytes
				_, err = request(longest+1, align)
				require.ErrorIs(t, err, ErrTooLarge)
			}
			_, err = request(longest, align)
			require.ErrorIs(t, err, ErrLimit, "it goes to the source")
		}
	}
	for bytes, want := range map[int64]error{-1: ErrNegative, 0: ErrTooLarge, 1: ErrTooLarge} {
		for _, one := range []error{ErrNegative, ErrTooLarge} {
			assert.Equal(t, errors.Is(want, one), errors.Is(&SizeError{RequestedBytes: bytes}, one), bytes)
		}
	}
}

// A block lies within the memory of its slot, also after a block of a larger alignment.
func TestBlocksLieWithinTheirSlots(t *testing.T) {
	t.Parallel()
	for range 20 { // the heap gives other addresses
		p := must[*Pool](t)(Pooled(NewAligned(), PoolConfig{}))
		for _, request := range []func(bytes, align int64) (Block, error){p.Alloc, p.AllocZeroed} {
			for _, align := range []int64{0, 4 * pageBytes, 0, 8 * pageBytes, 64, 2 * pageBytes, pageBytes} {
				bytes := int64(1<<20) - max(align-pageBytes, 0)
				b, err := request(bytes, align)
				require.NoError(t, err)
				s := b.slot.where.(*pooled)
				require.Zero(t, lead(address(b), align))
				require.GreaterOrEqual(t, address(b), s.address())
				require.LessOrEqual(t, address(b)+uint64(bytes), s.address()+uint64(s.inner.Len())) //nolint:gosec // lengths
				free(t, b)
			}
		}
		assert.EqualValues(t, 1, p.Stats().Misses, "it is one slot")
		require.NoError(t, p.Close(t.Context()))
	}
}

// Errors have all facts.
func TestFactsOfErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := NewPageLocked(plainDevice{r.device}, PoolConfig{})
	assert.Equal(t, &CapabilityError{Device: r.device.Info().Name, Want: cudadrv.PinnedHost}, err)
	_, err = PageLockedSource(nil)
	assert.Equal(t, &ConfigError{Field: "Device", Want: "an opened device"}, err)
	_, err = Pooled(nil, PoolConfig{})
	assert.Equal(t, &ConfigError{Field: "inner", Want: "an allocator"}, err)
	_, err = Logged(NewAligned(), nil)
	assert.Equal(t, &ConfigError{Field: "log", Want: "a logger"}, err)
	_, err = Pooled(NewAligned(), PoolConfig{KeepBytes: -1})
	assert.Equal(t, &ConfigError{Field: "KeepBytes", Value: int64(-1), Want: "0 or more"}, err)
	_, err = ByName("cpu", Options{KeepBytes: -1})
	assert.Equal(t, &ConfigError{Field: "KeepBytes", Value: int64(-1), Want: "0 or more"}, err)
	_, err = Limited(NewAligned(), Bounds{Bytes: -2})
	assert.Equal(t, &ConfigError{Field: "Bounds.Bytes", Value: int64(-2), Want: "0 or more"}, err)
	_, err = Limited(NewAligned(), Bounds{Blocks: -2})
	assert.Equal(t, &ConfigError{Field: "Bounds.Blocks", Value: int64(-2), Want: "0 or more"}, err)

	s := vramStream(t)
	m := must[*StreamMemory](t)(OfStream(s))
	b := alloc(t, m, 10, 0)
	var refused *UseError
	require.ErrorAs(t, b.Use(s.Handle()+1), &refused)
	assert.Equal(t, s.Handle()+1, refused.Stream)
	assert.Equal(t, Device, refused.Kind)
	free(t, b)
	require.NoError(t, r.device.Close())
}

// The streams of a slot are the announced ones, each once.
func TestStreamsOfASlot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first uint64
		more  []cudadrv.Stream // the oldest first
		want  []cudadrv.Stream
	}{
		{},
		{first: 8, want: []cudadrv.Stream{7}},
		{more: []cudadrv.Stream{7}, want: []cudadrv.Stream{7}},
		{more: []cudadrv.Stream{7, 9}, want: []cudadrv.Stream{9, 7}},
		{first: 8, more: []cudadrv.Stream{7}, want: []cudadrv.Stream{7}},
		{first: 8, more: []cudadrv.Stream{7, 9}, want: []cudadrv.Stream{7, 9}},
		{first: 1, more: []cudadrv.Stream{0, 9, 7}, want: []cudadrv.Stream{0, 7, 9}},
	} {
		s := &slot{}
		s.first.Store(c.first)
		for _, stream := range c.more {
			s.push(stream, 0)
		}
		assert.Equal(t, c.want, s.streams(nil, 0), "%v", c)
		assert.Equal(t, c.first != 0, s.noted())
		s.forget()
		assert.Empty(t, s.streams(nil, 0))
		assert.False(t, s.noted())
	}
}

// Figures that change while they are read are not negative, and agree.
func TestFiguresThatChange(t *testing.T) {
	t.Parallel()
	p := must[*Pool](t)(Pooled(NewAligned(), PoolConfig{}))
	free(t, alloc(t, p, 100, 0))
	p.pendingBlocks.Add(1) // the reader has read them, and then the block became free
	p.pendingBytes.Add(128)
	s := p.Stats()
	assert.Equal(t, []int64{0, 0, 128}, []int64{s.LiveBlocks, s.LiveBytes, s.KeptBytes})
	assert.Equal(t, []uint64{1, 1}, []uint64{s.Allocs, s.Frees})
	p.pendingBlocks.Add(-1)
	p.pendingBytes.Add(-128)
	require.NoError(t, p.Close(t.Context()))
}

// The error of a driver that cannot wait for a use is Trim's, and a panic of it is reported, as is the end of its goroutine. Nothing is
// lost.
func TestAWaitForAUseThatFails(t *testing.T) {
	ways := map[string]func(r *rig){"error": func(r *rig) { r.fail("cuEventSynchronize", 1, 1, cudadrv.LaunchFailed) }}
	for name, exit := range exits(t) {
		ways[name] = func(r *rig) {
			r.faults.SetBefore(func(function string) {
				if function == "cuEventSynchronize" {
					exit()
				}
			})
		}
	}
	for name, fails := range ways {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.cache(1 << 20)
			s := r.stream()
			r.busy(s, time.Second)
			b := alloc(t, p, 4096, 0)
			require.NoError(t, b.Use(s))
			free(t, b)
			fails(r)
			released, err := p.Trim(t.Context())
			assert.Zero(t, released)
			if name != "error" {
				require.ErrorIs(t, err, errPanicked)
				assert.EqualValues(t, 1, p.panics.Count())
			} else {
				require.ErrorIs(t, err, cudadrv.LaunchFailed)
				assert.Zero(t, p.panics.Count())
			}
			assert.EqualValues(t, 4096, p.Stats().PendingBytes)
			r.faults.SetBefore(nil)
			r.faults.Clear()
			require.NoError(t, checkBooks(p))
			r.end(p)
		})
	}
}

// A driver that does not return from the release of the event that a Trim has waited for fails the Trim, and not the process.
func TestAnEventThatCannotBeReleasedAfterAWait(t *testing.T) {
	for name, exit := range exits(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.cache(1 << 20)
			s := r.stream()
			r.busy(s, time.Second)
			b := alloc(t, p, 4096, 0)
			require.NoError(t, b.Use(s))
			free(t, b)
			var marks []fence.Mark
			for range 100 { // more than are kept
				marks = append(marks, must[fence.Mark](t)(p.events.Record(s)))
			}
			waits := false
			r.faults.SetBefore(func(function string) {
				switch {
				case function == "cuEventSynchronize":
					r.sim.Advance(time.Second)
					assert.True(t, p.look()) // so the wait has the last share
					for _, m := range marks {
						assert.NoError(t, p.events.Release(m))
					}
					waits = true
				case function == "cuEventDestroy" && waits:
					exit()
				}
			})
			_, err := p.Trim(t.Context())
			require.ErrorIs(t, err, errPanicked)
			assert.EqualValues(t, 1, p.panics.Count())
			r.faults.SetBefore(nil)
			require.NoError(t, p.Close(t.Context()))
			require.NoError(t, r.device.Close())
		})
	}
}

// While another goroutine looks at the pending memory a Trim waits for that look, or its context.
func TestATrimWaitsForALookOfAnother(t *testing.T) {
	reason := errors.New("enough")
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			p := r.cache(1 << 20)
			s := r.stream()
			b := alloc(t, p, 4096, 0)
			require.NoError(t, b.Use(s))
			free(t, b)
			g := r.hold("cuEventQuery")
			looked := make(chan bool, 1)
			go func() { looked <- p.look() }()
			<-g.entered
			r.faults.SetBefore(nil)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, reason)
			defer cancel()
			var released int64
			trimmed := make(chan error, 1)
			go func() {
				var err error
				released, err = p.Trim(ctx)
				trimmed <- err
			}()
			if ends {
				require.ErrorIs(t, <-trimmed, reason)
				assert.Zero(t, released)
				close(g.open)
			} else {
				synctest.Wait()
				require.Empty(t, trimmed)
				close(g.open)
				require.NoError(t, <-trimmed)
				assert.EqualValues(t, 4096, released)
			}
			require.True(t, <-looked)
			r.end(p)
		})
	}
}

// Close of an allocator by name returns the error of its device.
func TestTheDeviceOfANameDoesNotClose(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cuda:0", "cuda:0/pinned"} {
		faults := fault.Wrap(sim.New(sim.Config{Bytes: true}))
		a := must[Allocator](t)(ByName(name, Options{Driver: faults}))
		require.NoError(t, faults.Add(fault.Rule{Func: "cuDevicePrimaryCtxRelease", Result: cudadrv.LaunchFailed}))
		require.ErrorIs(t, a.Close(t.Context()), cudadrv.LaunchFailed, name)
	}
}

// The address of a page-locked block is the address of its first byte, however it is aligned, and a refusal has the requested size.
func TestTheAddressOfAnAlignedBlock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.cache(1 << 24)
	for range 2 { // from the source, and from the cache
		var all []Block
		for _, align := range []int64{0, 64, 4096, 1 << 16, MaxAlign} {
			b := alloc(t, p, 100, align)
			at, err := r.memory.MemHostGetDevicePointer(b.Bytes())
			require.NoError(t, err)
			assert.Equal(t, at, b.Ptr(), "aligned to %d", align)
			all = append(all, b)
		}
		require.NoError(t, FreeAll(all...))
	}
	source := must[*PageLockedMemory](t)(PageLockedSource(r.device))
	r.fail("cuMemHostAlloc", 1, 1, cudadrv.OutOfMemory)
	_, err := source.Alloc(100, 1<<16)
	var refused *MemoryError
	require.ErrorAs(t, err, &refused)
	assert.EqualValues(t, 100, refused.RequestedBytes)
	r.end(p)
}

// A list is taken oldest first, and one that is taken out leaves the others in their order.
func TestTheOrderOfAList(t *testing.T) {
	t.Parallel()
	var list stack
	all := make([]pooled, 5)
	for i := range all {
		list.push(&all[i])
	}
	assert.Same(t, &all[1], list.takeOne(func(s *pooled) bool { return s != &all[0] }))
	var order []int
	for s := list.takeAll(); s != nil; s = s.next {
		for i := range all {
			if s == &all[i] {
				order = append(order, i)
			}
		}
	}
	assert.Equal(t, []int{0, 2, 3, 4}, order)
	assert.True(t, list.empty())
}
