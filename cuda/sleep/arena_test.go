package sleep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/streams"
	"github.com/go-vram/vram/vramtest"
)

// weights returns the sizes of a model's buffers, in small.
func weights() (sizes []int64) {
	count, large := 20, 32*mib
	if testing.Short() {
		count, large = 8, 8*mib
	}
	for range count {
		sizes = append(sizes, 4*kib, 16*kib, 300*kib, 2*mib)
	}
	return append(sizes, large, large*3/4, 7*mib+512)
}

func TestContentsComeBack(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, sleep.Options{})
	before := r.freeBytes()
	var buffers []cuda.Buffer
	var want [][]byte
	var sum int64
	for i, n := range weights() {
		b, bytes := r.filled(n, uint64(i)) //nolint:gosec // a small number
		buffers, want, sum = append(buffers, b), append(want, bytes), sum+n
	}
	other, err := r.c.Alloc(3 * mib) // memory of the stream stays
	require.NoError(t, err)
	kept := r.fill(other, 99)
	awake := r.freeBytes()
	address := buffers[7].Ptr()

	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	assert.Equal(t, sleep.Asleep, r.arena.State())
	assert.GreaterOrEqual(t, r.freeBytes()-awake, sum*95/100, "95 % of the bytes are given back")
	n := r.dev.Stats()
	assert.GreaterOrEqual(t, n.SleepingBytes, sum)
	assert.LessOrEqual(t, n.ReservedBytes, before-r.freeBytes())
	of, err := r.arena.Stats(ctx)
	require.NoError(t, err)
	assert.Equal(t, n.SleepingBytes, of.SleepingBytes)
	assert.Equal(t, of.HeldBytes, of.SleepingBytes)
	assert.GreaterOrEqual(t, of.SavedBytes, sum)
	r.holds(other, kept)

	require.ErrorIs(t, cuda.CopyIn(r.c, buffers[0], want[0]), sleep.ErrAsleep)
	var argument *cuda.ArgumentError
	require.ErrorAs(t, r.c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(buffers[3])), &argument)
	require.ErrorIs(t, argument, cuda.ErrAsleep)
	_, err = r.arena.Alloc(512)
	require.ErrorIs(t, err, cuda.ErrAsleep)

	require.NoError(t, r.arena.Wake(ctx))
	assert.Equal(t, address, buffers[7].Ptr())
	for i, b := range buffers {
		r.holds(b, want[i])
	}
	require.NoError(t, r.c.Launch(r.touch, cuda.Cover(1, 1), cuda.InOut(buffers[3])))
	assert.Zero(t, r.dev.Stats().SleepingBytes)
	of, err = r.arena.Stats(ctx)
	require.NoError(t, err)
	assert.Equal(t, [...]int64{0, 0, 1, 1}, [...]int64{of.SleepingBytes, of.SavedBytes, int64(of.Sleeps), int64(of.Wakes)}) //nolint:gosec // counts
	require.NoError(t, other.Free())
}

func TestContentsAreDropped(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, sleep.Options{})
	b, _ := r.filled(5*mib, 1)
	require.NoError(t, r.arena.Sleep(ctx, sleep.Drop))
	n, err := r.arena.Stats(ctx)
	require.NoError(t, err)
	assert.Zero(t, n.SavedBytes)
	require.NoError(t, r.arena.Wake(ctx))
	r.holds(b, r.fill(b, 2))
}

func TestTwice(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, sleep.Options{})
	b, want := r.filled(5*mib, 1)
	require.NoError(t, r.arena.Wake(ctx), "it is awake")
	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	require.NoError(t, r.arena.Wake(ctx))
	require.NoError(t, r.arena.Wake(ctx))
	r.holds(b, want)

	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	require.NoError(t, r.arena.Sleep(ctx, sleep.Drop), "the saved contents go")
	n, err := r.arena.Stats(ctx)
	require.NoError(t, err)
	assert.Equal(t, [...]int64{0, n.HeldBytes}, [...]int64{n.SavedBytes, n.SleepingBytes})
	require.NoError(t, r.arena.Wake(ctx))
}

// The memory map lists sleeping memory by state.
func TestTheMemoryMapHasWhatSleeps(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, sleep.Options{})
	live := r.c.Stream()
	other, err := live.Alloc(3 * mib)
	require.NoError(t, err)
	b, _ := r.filled(5*mib, 1)
	small, _ := r.filled(4*kib, 2)
	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	for _, resolutionBytes := range []int64{512, 64 * mib} {
		m, err := r.dev.MemoryMap(ctx, resolutionBytes)
		require.NoError(t, err)
		n := r.dev.Stats()
		require.Positive(t, n.SleepingBytes)
		assert.Equal(t, n.SleepingBytes, m.Total.SleepingBytes)
		assert.Equal(t, n.LiveBytes, m.Total.LiveBytes)
		assert.Equal(t, n.ReservedBytes, m.ReservedBytes)
		assert.Zero(t, m.UnmappedBytes)
		for _, s := range m.Segments {
			for _, x := range s.Ranges {
				at := s.Address + cudadrv.Ptr(x.OffsetBytes)
				inside := func(p cudadrv.Ptr) bool { return at <= p && p < at+cudadrv.Ptr(x.Bytes) }
				if x.State != vram.MemoryMixed && (inside(b.Ptr()) || inside(other.Ptr())) {
					assert.Equal(t, inside(b.Ptr()), x.Asleep)
				}
			}
		}
	}
	require.NoError(t, r.arena.Wake(ctx))
	m, err := r.dev.MemoryMap(ctx, 0)
	require.NoError(t, err)
	assert.Zero(t, m.Total.SleepingBytes)
	require.NoError(t, small.Free())
	require.NoError(t, other.Free())
}

func TestAnEmptyArenaSleeps(t *testing.T) {
	r := newRig(t, sleep.Options{})
	require.NoError(t, r.arena.Sleep(t.Context(), sleep.Save))
	require.NoError(t, r.arena.Wake(t.Context()))
	b, want := r.filled(mib, 1)
	r.holds(b, want)
}

func TestBuffersAreFreedAsleep(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, sleep.Options{})
	a, _ := r.filled(3*mib, 1)
	b, want := r.filled(5*mib, 2)
	small, _ := r.filled(4*kib, 3)
	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	require.NoError(t, a.Free())
	require.NoError(t, small.Free())
	require.ErrorIs(t, a.Free(), vram.ErrBadFree)
	require.NoError(t, r.arena.Wake(ctx))
	r.holds(b, want)
	again, bytes := r.filled(3*mib, 4)
	r.holds(again, bytes)
	r.holds(b, want)
}

func TestPlainSegmentsDoNotSleep(t *testing.T) {
	for name, options := range map[string][]vramtest.Option{
		"wanted": {vramtest.Config(vram.Config{Segments: vram.SegmentsPlain})},
		"needed": {vramtest.Machine(sim.Config{NoVirtualMemory: true})},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := cuda.NewContext(vramtest.Open(t, options...).Stream())
			require.NoError(t, err)
			_, err = sleep.New(c, sleep.Options{})
			require.ErrorIs(t, err, cudadrv.NotSupported)
			require.NoError(t, c.Close())
		})
	}
}

// TestOnlyTheOwnerSubmitsToTheStream finds the stream of an arena, on which work would pass the gate.
func TestOnlyTheOwnerSubmitsToTheStream(t *testing.T) {
	r := newRig(t, sleep.Options{})
	b, _ := r.filled(mib, 1)
	home, ok := streams.Home(b)
	require.True(t, ok)
	_, err := cuda.NewContext(home)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
}

// TestWithoutPageLockedMemory drops contents, and does not save them.
func TestWithoutPageLockedMemory(t *testing.T) {
	dev := vramtest.Open(t) // without bytes
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	a, err := sleep.New(c, sleep.Options{})
	require.NoError(t, err)
	b, err := a.Alloc(mib)
	require.NoError(t, err)
	require.ErrorIs(t, a.Sleep(t.Context(), sleep.Save), cudadrv.NotSupported)
	assert.Equal(t, sleep.Awake, a.State())
	require.NoError(t, a.Sleep(t.Context(), sleep.Drop))
	require.NoError(t, a.Wake(t.Context()))
	require.NoError(t, c.Fill8(cuda.Whole(b), 1))
	require.NoError(t, b.Free())
	require.NoError(t, a.Close())
	require.NoError(t, c.Close())
}

func TestBadCalls(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, sleep.Options{})
	var none *sleep.Arena
	_, err := none.Alloc(1)
	require.ErrorIs(t, err, sleep.ErrNotOpen)
	require.ErrorIs(t, none.Sleep(ctx, sleep.Save), sleep.ErrNotOpen)
	require.ErrorIs(t, none.Wake(ctx), sleep.ErrNotOpen)
	require.ErrorIs(t, none.Close(), sleep.ErrNotOpen)
	assert.Equal(t, sleep.Closed, none.State())
	_, err = none.Stats(ctx)
	require.ErrorIs(t, err, sleep.ErrNotOpen)
	_, err = sleep.New(nil, sleep.Options{})
	require.ErrorIs(t, err, sleep.ErrNotOpen)

	var contents *sleep.ContentsError
	require.ErrorAs(t, r.arena.Sleep(ctx, 0), &contents)
	require.ErrorIs(t, r.arena.Sleep(nil, sleep.Save), sleep.ErrNilContext) //nolint:staticcheck // refused
	_, err = r.arena.Stats(nil)                                             //nolint:staticcheck // refused
	require.ErrorIs(t, err, sleep.ErrNilContext)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, r.arena.Sleep(ended, sleep.Save), context.Canceled)
	require.ErrorIs(t, r.arena.Wake(ended), context.Canceled)
	assert.Equal(t, sleep.Awake, r.arena.State())

	require.NoError(t, r.arena.Close())
	require.ErrorIs(t, r.arena.Sleep(ctx, sleep.Save), sleep.ErrClosed)
	require.ErrorIs(t, r.arena.Wake(ctx), sleep.ErrClosed)
	_, err = r.arena.Alloc(1)
	require.ErrorIs(t, err, sleep.ErrClosed)
	assert.Equal(t, "awake asleep closed", sleep.Awake.String()+" "+sleep.Asleep.String()+" "+sleep.Closed.String())
	require.True(t, errors.Is(&sleep.Error{Err: sleep.ErrAsleep}, sleep.ErrAsleep))
}
