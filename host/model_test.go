package host

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
)

// model is a reference for a page-locked cache under a limit: lists of blocks, and when each use passes.
type model struct {
	*rig
	p       *Pool
	a       *Limit
	streams []cudadrv.Stream
	ends    []time.Duration // of the work of each stream
	live    []modelBlock
	dead    []Block
	held    map[uint64]heldUntil // pending memory by address, until its uses pass
	bytes   int64
	mark    byte
}

type modelBlock struct {
	Block
	mark byte
	uses map[int]bool
}

type heldUntil struct {
	until time.Duration
	bytes int64
}

const (
	modelKeepBytes  = 40_000
	modelLimitBytes = 100_000
)

// Random requests, uses, frees, failures, passing time and trims go as the reference says.
func TestAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t)
		m := &model{rig: r, p: r.cache(modelKeepBytes), held: map[uint64]heldUntil{}}
		m.a = must[*Limit](t)(Limited(m.p, Bounds{Bytes: modelLimitBytes}))
		for range 3 {
			m.streams = append(m.streams, r.stream())
			m.ends = append(m.ends, 0)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"alloc": m.alloc, "free": m.free, "freeAll": m.freeAll, "freeAgain": m.freeAgain, "use": m.use, "work": m.work,
			"pass": m.pass, "trim": m.trim, "fail": m.fail, "": m.check,
		})
		r.faults.Clear()
		for _, b := range m.live {
			if err := b.Free(); err != nil {
				rt.Fatal(err)
			}
		}
		r.end(m.a)
	})
}

func (m *model) alloc(rt *rapid.T) {
	length := rapid.Int64Range(1, 20_000).Draw(rt, "length")
	align := int64(1) << rapid.IntRange(0, 14).Draw(rt, "align")
	request, zeroed := m.a.Alloc, rapid.Bool().Draw(rt, "zeroed")
	if zeroed {
		request = m.a.AllocZeroed
	}
	b, err := request(length, align)
	if m.bytes+length > modelLimitBytes {
		require.ErrorIs(rt, err, ErrLimit)
		return
	}
	if err != nil { // the script's
		require.ErrorIs(rt, err, cudadrv.LaunchFailed)
		return
	}
	require.Len(rt, b.Bytes(), int(length))
	require.Zero(rt, lead(address(b), align))
	if zeroed {
		require.Equal(rt, int(length), bytes.Count(b.Bytes(), []byte{0}))
	}
	base := b.slot.address()
	if h, ok := m.held[base]; ok {
		require.LessOrEqual(rt, h.until, m.sim.Now(), "reused before its uses have passed")
		delete(m.held, base)
	}
	m.mark++
	copy(b.Bytes(), bytes.Repeat([]byte{m.mark}, int(length)))
	m.live = append(m.live, modelBlock{b, m.mark, map[int]bool{}})
	m.bytes += length
}

func (m *model) pick(rt *rapid.T) int {
	if len(m.live) == 0 {
		rt.Skip("nothing is live")
	}
	return rapid.IntRange(0, len(m.live)-1).Draw(rt, "block")
}

func (m *model) free(rt *rapid.T) {
	b := m.live[m.pick(rt)]
	m.frees(rt, func() error { return b.Free() }, b)
}

// freeAll frees some blocks, any number of them, as one batch.
func (m *model) freeAll(rt *rapid.T) {
	var some []modelBlock
	var blocks []Block
	for _, b := range m.live {
		if rapid.Bool().Draw(rt, "freed") {
			some, blocks = append(some, b), append(blocks, b.Block)
		}
	}
	m.frees(rt, func() error { return FreeAll(blocks...) }, some...)
}

// frees frees blocks, and notes those that were not refused.
func (m *model) frees(rt *rapid.T, free func() error, all ...modelBlock) {
	addresses := make([]uint64, len(all)) // later the memory may be released
	for i, b := range all {
		addresses[i] = b.slot.address()
	}
	err, refused := free(), false
	for i, b := range all {
		if b.Live() {
			require.NotEmpty(rt, b.uses, "a free without uses makes no driver call")
			refused = true
			continue
		}
		h := heldUntil{bytes: b.slot.where.(*pooled).shelf.bytes}
		for s := range b.uses {
			h.until = max(h.until, m.ends[s])
		}
		if len(b.uses) > 0 {
			m.held[addresses[i]] = h
		}
		m.bytes -= b.Len()
		m.live = slices.DeleteFunc(m.live, func(one modelBlock) bool { return one.Block == b.Block })
		m.dead = append(m.dead, b.Block)
	}
	if refused {
		require.ErrorIs(rt, err, cudadrv.LaunchFailed)
	} else {
		require.NoError(rt, err)
	}
}

func (m *model) freeAgain(rt *rapid.T) {
	if len(m.dead) == 0 {
		rt.Skip("nothing was freed")
	}
	b := m.dead[rapid.IntRange(0, len(m.dead)-1).Draw(rt, "dead")]
	require.ErrorIs(rt, b.Free(), ErrBadFree)
	require.False(rt, b.Live())
	require.Nil(rt, b.Bytes())
	require.ErrorIs(rt, b.Use(m.streams[0]), ErrNotLive)
}

func (m *model) use(rt *rapid.T) {
	b, s := m.live[m.pick(rt)], rapid.IntRange(0, len(m.streams)-1).Draw(rt, "stream")
	require.NoError(rt, b.Use(m.streams[s]))
	b.uses[s] = true
}

func (m *model) work(rt *rapid.T) {
	s := rapid.IntRange(0, len(m.streams)-1).Draw(rt, "stream")
	d := time.Duration(rapid.Int64Range(1, int64(time.Millisecond)).Draw(rt, "duration"))
	if m.sim.Launch(m.streams[s], d) == nil {
		m.ends[s] = max(m.ends[s], m.sim.Now()) + d
	}
}

func (m *model) pass(rt *rapid.T) {
	m.sim.Advance(time.Duration(rapid.Int64Range(1, int64(time.Millisecond)).Draw(rt, "time")))
}

func (m *model) trim(rt *rapid.T) {
	if _, err := m.p.Trim(m.t.Context()); err != nil {
		require.ErrorIs(rt, err, cudadrv.LaunchFailed)
		return
	}
	s := m.p.Stats()
	require.Zero(rt, s.KeptBytes+s.PendingBytes+s.ReleasingBytes)
	clear(m.held) // the driver may return the addresses again
}

func (m *model) fail(rt *rapid.T) {
	m.faults.Clear()
	function := rapid.SampledFrom([]string{
		"", "cuMemHostAlloc", "cuMemFreeHost", "cuMemHostGetDevicePointer", "cuEventRecord", "cuEventQuery", "cuEventCreate",
		"cuEventSynchronize",
	}).Draw(rt, "function")
	if function != "" {
		require.NoError(rt, m.faults.Add(fault.Rule{Func: function, First: 1, Count: 1, Result: cudadrv.LaunchFailed}))
	}
}

func (m *model) check(rt *rapid.T) {
	require.NoError(rt, m.p.awaitReleases(m.t.Context()))
	require.NoError(rt, checkBooks(m.p))
	s := m.p.Stats()
	require.LessOrEqual(rt, s.KeptBytes, int64(modelKeepBytes))
	require.EqualValues(rt, len(m.live), s.LiveBlocks)
	require.EqualValues(rt, len(m.dead), s.Frees)
	require.Equal(rt, m.a.bytes.Load(), m.bytes)
	for _, b := range m.live {
		require.True(rt, b.Live())
		require.Equal(rt, int(b.Len()), bytes.Count(b.Bytes(), []byte{b.mark}), fmt.Sprint("block ", b.mark))
	}
}
