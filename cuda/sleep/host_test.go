package sleep_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/host"
	"github.com/go-vram/vram/vramtest"
)

// sizes is host memory that notes the sizes of its blocks.
type sizes struct {
	host.Allocator
	all []int64
}

func (s *sizes) Alloc(byteCount, align int64) (host.Block, error) {
	s.all = append(s.all, byteCount)
	return s.Allocator.Alloc(byteCount, align)
}

// newHost returns page-locked memory of a device, of which tests see sizes and live blocks.
func newHost(t *testing.T, dev *vramtest.Device) *sizes {
	t.Helper()
	cached, err := host.NewPageLocked(dev.GPU(), host.PoolConfig{KeepBytes: 64 * mib})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cached.Close(context.Background())) })
	return &sizes{Allocator: cached}
}

// Saved contents lie in blocks of BlockBytes, of which only the last one is shorter, and go back to the host when they are not
// needed any more: by Wake, by a Sleep that drops them, and by Close.
func TestContentsAreSavedInBlocksOfTheHost(t *testing.T) {
	for name, one := range map[string]struct {
		blockBytes int64
		want       []int64
	}{
		"the default": {0, []int64{7 * mib}},
		"negative":    {-1, []int64{7 * mib}},
		"one more":    {7*mib + 1, []int64{7 * mib}},
		"the whole":   {7 * mib, []int64{7 * mib}},
		"one less":    {7*mib - 1, []int64{7*mib - 1, 1}},
		"several":     {3 * mib, []int64{3 * mib, 3 * mib, mib}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			r := newRig(t, sleep.Options{})
			memory := newHost(t, r.dev)
			a, err := sleep.New(r.c, sleep.Options{Host: memory, BlockBytes: one.blockBytes})
			require.NoError(t, err)
			b, err := a.Alloc(7 * mib)
			require.NoError(t, err)
			want := r.fill(b, 1)
			live := func() int64 { return memory.Stats().LiveBlocks }
			saves := func() {
				memory.all = nil
				require.NoError(t, a.Sleep(ctx, sleep.Save))
				assert.Equal(t, one.want, memory.all)
				assert.EqualValues(t, len(one.want), live())
				n, err := a.Stats(ctx)
				require.NoError(t, err)
				assert.Equal(t, 7*mib, n.SavedBytes)
			}
			saves()
			require.NoError(t, a.Wake(ctx))
			r.holds(b, want)
			assert.Zero(t, live())
			saves()
			require.NoError(t, a.Sleep(ctx, sleep.Drop))
			assert.Zero(t, live())
			require.NoError(t, a.Wake(ctx))
			saves()
			require.NoError(t, b.Free())
			require.NoError(t, a.Close())
			assert.Zero(t, live())
			again, err := memory.Alloc(1, 0)
			require.NoError(t, err, "the host's memory is not the arena's to close")
			require.NoError(t, again.Free())
		})
	}
}

// Memory of the host that the driver does not take back is no error of Wake. The next call tries again, and Close returns the
// error while it fails.
func TestRefusedMemoryOfTheHostIsFreedLater(t *testing.T) {
	ctx := t.Context()
	r := newFaultyRig(t, sleep.Options{BlockBytes: mib})
	b, want := r.filled(3*mib, 1)
	live := func() int { // each failed call is one of those that free
		return int(r.faults.Calls("cuMemHostAlloc")) - int(r.faults.Calls("cuMemFreeHost")) + int(r.faults.Injected())
	}
	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	require.Equal(t, 3, live())
	r.fails(fault.Rule{Func: "cuMemFreeHost", First: 2, Result: cudadrv.Unknown})
	require.NoError(t, r.arena.Wake(ctx))
	r.faults.Clear()
	r.holds(b, want)
	assert.Equal(t, 1, live(), "the others were freed")
	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	require.NoError(t, r.arena.Wake(ctx))
	assert.Zero(t, live(), "it was freed with those of the next Sleep")
	assert.Zero(t, r.arena.Spent())

	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	r.fails(fault.Rule{Func: "cuMemFreeHost", Result: cudadrv.Unknown})
	require.ErrorIs(t, r.arena.Close(), cudadrv.Unknown)
	assert.Equal(t, 3, live())
	assert.Equal(t, sleep.Closed, r.arena.State())
	r.faults.Clear()
	require.NoError(t, r.arena.Close())
	assert.Zero(t, live())
}

// Calls that copy nothing wait for no copies, also after calls that did.
func TestNoWaitWithoutCopies(t *testing.T) {
	ctx := t.Context()
	r := newFaultyRig(t, sleep.Options{})
	_, _ = r.filled(3*mib, 1)
	require.NoError(t, r.arena.Sleep(ctx, sleep.Save))
	require.NoError(t, r.arena.Wake(ctx))
	waits := r.faults.Calls("cuStreamSynchronize")
	require.NoError(t, r.arena.Sleep(ctx, sleep.Drop))
	require.NoError(t, r.arena.Sleep(ctx, sleep.Drop))
	require.NoError(t, r.arena.Wake(ctx))
	assert.Equal(t, waits, r.faults.Calls("cuStreamSynchronize"))
}

func TestTexts(t *testing.T) {
	assert.Equal(t, "save drop Contents(3)", sleep.Save.String()+" "+sleep.Drop.String()+" "+sleep.Contents(3).String())
	assert.Equal(t, "in an unknown state", sleep.State(3).String())
	for want, marshal := range map[string]func() ([]byte, error){"drop": sleep.Drop.MarshalText, "closed": sleep.Closed.MarshalText} {
		text, err := marshal()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
	require.EqualError(t, &sleep.Error{Doing: "saving contents", State: sleep.Asleep, Err: sleep.ErrNilContext},
		"sleep: saving contents: "+sleep.ErrNilContext.Error()+"; the arena is asleep")
	require.EqualError(t, &sleep.ContentsError{Contents: 3}, "sleep: contents are saved (1) or dropped (2), not 3")
}

// closesInUse closes the device, which has live buffers.
func (r *rig) closesInUse() {
	r.Helper()
	var inUse *vram.InUseError
	require.ErrorAs(r, r.dev.Close(), &inUse)
}

// However an arena ends, memory of the caller's Host goes back to it, also where the device was closed before.
func TestTheCallersHostGetsItsMemoryBack(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, r *rig, a *sleep.Arena){
		"awake": func(ctx context.Context, _ *rig, a *sleep.Arena) {
			require.NoError(t, a.Sleep(ctx, sleep.Save))
			require.NoError(t, a.Wake(ctx))
		},
		"asleep": func(ctx context.Context, _ *rig, a *sleep.Arena) { require.NoError(t, a.Sleep(ctx, sleep.Save)) },
		"dropped": func(ctx context.Context, _ *rig, a *sleep.Arena) {
			require.NoError(t, a.Sleep(ctx, sleep.Save))
			require.NoError(t, a.Sleep(ctx, sleep.Drop))
		},
		"without a device, awake": func(_ context.Context, r *rig, _ *sleep.Arena) { r.closesInUse() },
		"without a device, asleep": func(ctx context.Context, r *rig, a *sleep.Arena) {
			require.NoError(t, a.Sleep(ctx, sleep.Save))
			r.closesInUse()
		},
		"without a device, after a Wake": func(ctx context.Context, r *rig, a *sleep.Arena) {
			require.NoError(t, a.Sleep(ctx, sleep.Save))
			r.closesInUse()
			require.ErrorIs(t, a.Wake(ctx), sleep.ErrClosed)
		},
		"without a device, after copies whose end was not known": func(ctx context.Context, r *rig, a *sleep.Arena) {
			r.faults.SetBefore(func(function string) {
				if function == "cuMemcpyDtoHAsync" {
					r.faults.SetBefore(nil)
					r.fails(fault.Rule{Func: "cuStreamSynchronize", First: 1, Count: fault.Forever, Result: cudadrv.Unknown})
				}
			})
			require.ErrorIs(t, a.Sleep(ctx, sleep.Save), cudadrv.Unknown)
			r.faults.Clear()
			r.closesInUse()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFaultyRig(t, sleep.Options{})
			memory, err := host.Tracked(host.NewAligned())
			require.NoError(t, err)
			a, err := sleep.New(r.c, sleep.Options{Host: memory, BlockBytes: mib})
			require.NoError(t, err)
			b, err := a.Alloc(3 * mib)
			require.NoError(t, err)
			r.fill(b, 1)
			end(t.Context(), r, a)
			require.NoError(t, a.Close())
			assert.Zero(t, memory.Stats().LiveBlocks)
			require.NoError(t, memory.Close(t.Context()))
			if err := b.Free(); err != nil {
				require.ErrorIs(t, err, vram.ErrClosed)
			}
		})
	}
}
