package streams

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams/core"
)

// shared plays the step of playStep, whose buffers another stream uses, hands over, or ends the use of.
type shared struct {
	t           *testing.T
	home, other *Stream
	live        []Buffer
	pending     []Buffer // freed, and the other stream has not finished
}

func (p *shared) step() {
	for i := range int64(40) {
		b, err := p.home.Alloc(mib + i*64*kib)
		require.NoError(p.t, err)
		for _, k := range p.pending {
			require.False(p.t, k.Ptr() < b.Ptr()+cudadrv.Ptr(b.Bytes()) && b.Ptr() < k.Ptr()+cudadrv.Ptr(k.Bytes()), "it is used")
		}
		if p.live = append(p.live, b); len(p.live) == 3 {
			p.free(int(i))
		}
	}
	for i := range 2 {
		p.free(i)
	}
}

// free announces something of the oldest buffer and frees it.
func (p *shared) free(way int) {
	b := p.live[0]
	p.live = p.live[1:]
	p.find(b)
	switch way % 4 {
	case 0:
		require.NoError(p.t, b.Free())
		return
	case 1:
		require.NoError(p.t, b.RecordStream(p.other))
	case 2:
		u, err := b.Use(p.other)
		require.NoError(p.t, err)
		require.NoError(p.t, u.Done())
	case 3:
		moved, err := b.Transfer(p.other)
		require.NoError(p.t, err)
		require.ErrorIs(p.t, b.Free(), ErrTransferred)
		b = moved
		p.find(b)
	}
	require.NoError(p.t, b.Free())
	require.ErrorIs(p.t, b.Free(), ErrDoubleFree)
	p.pending = append(p.pending, b)
	_, found := p.home.Lookup(b.Ptr())
	assert.False(p.t, found, "it is pending")
}

// find looks a buffer up by addresses inside.
func (p *shared) find(b Buffer) {
	for _, inside := range []int64{0, b.Bytes() / 2, b.Bytes() - 1} {
		got, found := p.home.Lookup(b.Ptr() + cudadrv.Ptr(inside))
		require.True(p.t, found)
		require.Equal(p.t, b, got)
	}
}

// Buffers that a plan placed and other streams use keep their places until those have finished; the plan is played
// again then.
func TestPlacedBuffersThatOthersUse(t *testing.T) {
	t.Parallel()
	r := newRig(t, 512*mib)
	home, other := r.streamWith(core.Budget{}, true), r.stream(core.Budget{})
	playUntilPlayed(t, r, home)
	plan, err := home.Plan(t.Context()) // it may be dropped for what is pending on its ground
	require.NoError(t, err)
	p := &shared{t: t, home: home, other: other}
	before := r.stats(home).Tape.PlacedCount
	r.work(other, time.Second)
	p.step()
	n := r.stats(home)
	assert.Greater(t, n.Tape.PlacedCount, before)
	var bytes int64
	for _, b := range p.pending {
		bytes += b.Bytes()
	}
	assert.Equal(t, bytes, n.PendingBytes)
	assert.Zero(t, n.LiveBytes)
	require.NoError(t, home.Check(t.Context()))

	p.step()
	require.NoError(t, home.Check(t.Context()))
	require.NoError(t, home.SetPlan(t.Context(), plan), "the memory of the plan is given up with what is pending there")
	require.NoError(t, home.Check(t.Context()))
	p.step()
	require.NoError(t, home.Check(t.Context()))
	r.tick(home)
	r.gpu.Advance(time.Second)
	r.tick(home)
	r.tick(home)
	assert.Zero(t, r.stats(home).PendingBytes)
	p.pending = nil
	for range 6 {
		playStep(t, home)
	}
	playUntilPlayed(t, r, home)
	now := r.stats(home).Tape.PlacedCount
	playStep(t, home)
	assert.EqualValues(t, 40, r.stats(home).Tape.PlacedCount-now, "the plan is played again")
	require.NoError(t, home.Check(t.Context()))
	require.NoError(t, home.Close())
}
