package host

import (
	"errors"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// nest is a source within wrappers, and a reference for it: the live blocks, and the memory that streams still use.
type nest struct {
	*rig
	random  *rand.Rand
	layers  []Allocator // the outermost first, the source last
	device  *vram.Device
	own     cudadrv.Stream // of the memory of a device
	streams []cudadrv.Stream
	ends    []time.Duration // of the work of each stream
	live    []modelBlock
	dead    []Block
	held    []heldBlock
}

// heldBlock is freed memory that a stream uses until then.
type heldBlock struct {
	from, to uint64
	until    time.Duration
}

// layer makes an allocator of a kind: a source, or a wrapper around the outermost layer.
func (n *nest) layer(t *testing.T, kind string) {
	t.Helper()
	var inner Allocator
	if len(n.layers) > 0 {
		inner = n.layers[0]
	}
	var a Allocator
	switch kind {
	case "aligned":
		a = NewAligned()
	case "page-locked":
		a = must[*PageLockedMemory](t)(PageLockedSource(n.rig.device))
	case "stream":
		n.device = must[*vram.Device](t)(vram.Open(vram.Config{Driver: n.driver}))
		s := must[*vram.Stream](t)(n.device.NewStream())
		n.own = s.Handle()
		a = must[*StreamMemory](t)(OfStream(s))
	case "limited":
		a = must[*Limit](t)(Limited(inner, Bounds{Bytes: 1 << 30, Blocks: 1 << 10}))
	case "tracked":
		a = must[*Track](t)(Tracked(inner))
	case "logged":
		a = must[*Log](t)(Logged(inner, slog.New(slog.DiscardHandler)))
	case "zeroed":
		a = must[*Zero](t)(Zeroed(inner))
	case "pooled":
		cfg := PoolConfig{KeepBytes: 20_000}
		if inner.Kind() == PageLocked {
			cfg.Device = n.rig.device
		}
		a = must[*Pool](t)(Pooled(inner, cfg))
	case "pooled with a device":
		a = must[*Pool](t)(Pooled(inner, PoolConfig{KeepBytes: 20_000, Device: n.rig.device}))
	}
	n.layers = slices.Insert(n.layers, 0, a)
}

// pool returns the outermost pool, nil if there is none.
func (n *nest) pool() *Pool {
	for _, a := range n.layers {
		if p, ok := a.(*Pool); ok {
			return p
		}
	}
	return nil
}

// Each wrapper around each around each source keeps its books, and one more between the two: after each request, use, free, refusal,
// trim and close every layer has as many blocks and bytes as the one outside of it holds, and no memory is another's, nor one that a stream uses.
func TestTheBooksOfNestedAllocators(t *testing.T) {
	t.Parallel()
	wraps := []string{"limited", "tracked", "logged", "zeroed", "pooled", "pooled with a device"}
	seed := uint64(0)
	for _, source := range []string{"aligned", "page-locked", "stream"} {
		for _, outer := range wraps {
			for _, inner := range wraps {
				for _, last := range []string{"close", "device closes"} {
					if last == "device closes" && source != "stream" {
						continue
					}
					seed++
					n := &nest{rig: newRig(t), random: rand.New(rand.NewPCG(seed, 3))}
					middle := wraps[n.random.IntN(len(wraps))]
					t.Run(outer+"("+middle+"("+inner+"("+source+"))), "+last, func(t *testing.T) {
						for _, kind := range []string{source, inner, middle, outer} {
							n.layer(t, kind)
						}
						n.run(t, last)
					})
				}
			}
		}
	}
}

func (n *nest) run(t *testing.T, last string) {
	t.Helper()
	for range 2 {
		n.streams, n.ends = append(n.streams, n.stream()), append(n.ends, 0)
	}
	steps := []func(*testing.T){n.alloc, n.alloc, n.alloc, n.use, n.use, n.free, n.free, n.work, n.refused, n.pass, n.trim}
	for range 60 {
		steps[n.random.IntN(len(steps))](t)
		n.check(t)
	}
	if last == "device closes" {
		_ = n.device.Close() // blocks may be live
		n.check(t)
	}
	err := n.layers[0].Close(t.Context())
	require.Equal(t, len(n.live) > 0, errors.Is(err, ErrLeak), "%v", err)
	n.check(t)
	_, err = n.layers[0].Alloc(100, 0)
	require.ErrorIs(t, err, ErrClosed)
	for _, b := range n.live {
		if err := b.Free(); err != nil {
			require.Equal(t, "device closes", last)
			require.ErrorIs(t, err, ErrClosed)
		}
		require.False(t, b.Live())
		n.live = n.live[1:]
		n.check(t)
	}
	for range 2 {
		require.NoError(t, n.layers[0].Close(t.Context()))
		n.check(t)
	}
	require.Zero(t, n.layers[len(n.layers)-1].Stats().LiveBlocks)
	if n.device != nil && last == "close" {
		require.NoError(t, n.device.Close())
	}
	require.NoError(t, n.rig.device.Close())
}

func (n *nest) alloc(t *testing.T) {
	t.Helper()
	request := n.layers[0].Alloc
	if n.random.IntN(2) == 0 {
		request = n.layers[0].AllocZeroed
	}
	fails := n.random.IntN(5) == 0
	if fails {
		n.fail("cuMemHostAlloc", 1, 1, cudadrv.LaunchFailed)
	}
	b, err := request(1+n.random.Int64N(9000), int64(1)<<n.random.IntN(14))
	n.faults.Clear()
	if err != nil {
		require.True(t, fails)
		require.ErrorIs(t, err, cudadrv.LaunchFailed)
		return
	}
	from, to := address(b), address(b)+uint64(b.Len()) //nolint:gosec // a length
	n.held = slices.DeleteFunc(n.held, func(h heldBlock) bool {
		meets := from < h.to && h.from < to
		require.False(t, meets && n.sim.Now() < h.until, "a stream uses it still")
		return meets
	})
	for _, other := range n.live {
		require.False(t, overlap(b, other.Block))
	}
	n.live = append(n.live, modelBlock{Block: b, uses: map[int]bool{}})
}

// use announces uses: the outermost pool keeps them, if it has a device. Without that no memory of a device can be waited for.
func (n *nest) use(t *testing.T) {
	t.Helper()
	if len(n.live) == 0 {
		return
	}
	b, i, p := n.live[n.random.IntN(len(n.live))], n.random.IntN(len(n.streams)), n.pool()
	if n.own != 0 {
		require.NoError(t, b.Use(n.own))
	}
	err := b.Use(n.streams[i])
	switch {
	case p != nil && p.events != nil:
		require.NoError(t, err)
		b.uses[i] = true
	case b.Kind() == Device:
		var refused *UseError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, UseError{Stream: n.streams[i], Kind: Device, Why: refused.Why}, *refused)
	default:
		require.NoError(t, err)
	}
}

// free frees some blocks as one batch, with a driver that refuses one call at times.
func (n *nest) free(t *testing.T) {
	t.Helper()
	var some []Block
	for _, b := range n.live {
		if n.random.IntN(3) == 0 {
			some = append(some, b.Block)
		}
	}
	fails := n.random.IntN(3) == 0
	if fails {
		functions := []string{"cuEventRecord", "cuEventCreate", "cuStreamIsCapturing", "cuEventQuery", "cuMemFreeHost"}
		n.fail(functions[n.random.IntN(len(functions))], 1+n.random.Uint64N(2), 1, cudadrv.LaunchFailed)
	}
	addresses := map[Block]uint64{} // later the memory may be released
	for _, b := range some {
		addresses[b] = address(b)
	}
	err := FreeAll(some...)
	n.settle(t)
	n.faults.Clear()
	refused := false
	n.live = slices.DeleteFunc(n.live, func(b modelBlock) bool {
		if !slices.Contains(some, b.Block) || b.Live() {
			refused = refused || slices.Contains(some, b.Block)
			return false
		}
		h := heldBlock{from: addresses[b.Block], to: addresses[b.Block] + uint64(b.Len())} //nolint:gosec // a length
		for i := range b.uses {
			h.until = max(h.until, n.ends[i])
		}
		n.held, n.dead = append(n.held, h), append(n.dead, b.Block)
		return true
	})
	if refused {
		require.True(t, fails)
		require.ErrorIs(t, err, cudadrv.LaunchFailed)
	} else {
		require.NoError(t, err)
	}
}

// refused has frees refused: of a block that was freed, and of one past the outermost layer.
func (n *nest) refused(t *testing.T) {
	t.Helper()
	if len(n.dead) > 0 {
		b := n.dead[n.random.IntN(len(n.dead))]
		require.ErrorIs(t, b.Free(), ErrBadFree)
		require.ErrorIs(t, b.Use(n.streams[0]), ErrNotLive)
	}
	if len(n.live) > 0 {
		b := n.live[n.random.IntN(len(n.live))]
		require.ErrorIs(t, n.layers[1+n.random.IntN(len(n.layers)-1)].Free(b.Block), ErrForeign)
		require.True(t, b.Live())
	}
}

func (n *nest) work(*testing.T) {
	i, d := n.random.IntN(len(n.streams)), time.Duration(1+n.random.Int64N(int64(time.Millisecond)))
	n.busy(n.streams[i], d)
	n.ends[i] = max(n.ends[i], n.sim.Now()) + d
}

func (n *nest) pass(*testing.T) {
	n.sim.Advance(time.Duration(n.random.Int64N(int64(time.Millisecond))))
}

func (n *nest) trim(t *testing.T) {
	t.Helper()
	_, err := Trim(t.Context(), n.layers[0])
	require.NoError(t, err)
	for _, a := range n.layers {
		if p, ok := a.(*Pool); ok {
			s := p.Stats()
			require.Zero(t, s.KeptBytes+s.PendingBytes+s.ReleasingBytes)
		}
	}
}

// settle waits until no pool releases memory on a goroutine.
func (n *nest) settle(t *testing.T) {
	t.Helper()
	for _, a := range n.layers {
		if p, ok := a.(*Pool); ok {
			require.NoError(t, p.awaitReleases(t.Context()))
		}
	}
}

// check compares the books of each layer with the blocks that the one outside of it holds.
func (n *nest) check(t *testing.T) {
	t.Helper()
	n.settle(t)
	blocks, bytes := int64(len(n.live)), int64(0)
	for _, b := range n.live {
		require.True(t, b.Live())
		bytes += b.Len()
	}
	for _, a := range n.layers {
		var got [2]int64
		switch a := a.(type) {
		case *Pool:
			require.NoError(t, checkBooks(a))
			s := a.Stats()
			require.Equal(t, blocks, s.LiveBlocks)
			blocks, bytes = 0, 0
			for sh := range a.shelves {
				taken := int64(shelfSlots - bits.OnesCount64(sh.vacant.Load()))
				blocks += taken
				bytes += taken * sh.bytes
			}
			require.Equal(t, bytes, s.LiveBytes+s.KeptBytes+s.PendingBytes+s.ReleasingBytes)
			continue
		case *Limit:
			got = [2]int64{a.blocks.Load(), a.bytes.Load()}
		case *Log, *Zero:
			continue
		default:
			got = [2]int64{a.Stats().LiveBlocks, a.Stats().LiveBytes}
		}
		require.Equal(t, [2]int64{blocks, bytes}, got, "%T", a)
	}
}
