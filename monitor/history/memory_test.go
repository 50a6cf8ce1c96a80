package history

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/monitor/snapshot"
	"github.com/go-vram/vram/pool"
)

// The blocks of a live range follow each other from its begin to its end. Each live one is a buffer that begins there, as far as it
// is within the range and the one before it; the others are free. No buffer that begins in free bytes is left out.
func TestBlocksOfALiveRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const from, to = 100, 140
		buffers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pool.LiveBuffer {
			bytes := int64(rapid.IntRange(1, 20).Draw(t, "bytes"))
			return pool.LiveBuffer{
				Ptr: vram.Ptr(rapid.IntRange(80, 150).Draw(t, "at")), Bytes: bytes, RequestedBytes: int64(rapid.IntRange(0, int(bytes)).Draw(t, "requested")),
			}
		}), 0, 6).Draw(t, "buffers")
		slices.SortStableFunc(buffers, func(a, b pool.LiveBuffer) int { return cmp.Compare(a.Ptr, b.Ptr) })
		d := drawing{stacks: map[string]snapshot.Stack{}}
		next := uint64(from)
		for _, b := range d.live(from, to, buffers) {
			require.Equal(t, next, b.Address)
			require.Positive(t, b.Bytes)
			next += uint64(b.Bytes)
			of := slices.IndexFunc(buffers, func(x pool.LiveBuffer) bool { return uint64(x.Ptr) == b.Address })
			if b.State == snapshot.Free {
				require.Equal(t, -1, of, "free bytes at %d begin with a buffer", b.Address)
				for _, x := range buffers {
					require.False(t, uint64(x.Ptr) > b.Address && uint64(x.Ptr) < next, "a buffer at %d is left out", x.Ptr)
				}
				continue
			}
			require.GreaterOrEqual(t, of, 0)
			x := buffers[of]
			require.Equal(t, snapshot.Live, b.State)
			require.Equal(t, min(x.Bytes, int64(to-b.Address)), b.Bytes)
			if x.RequestedBytes == 0 {
				require.Equal(t, b.Bytes, b.RequestedBytes, "it is not known")
			} else {
				require.Equal(t, min(b.Bytes, x.RequestedBytes), b.RequestedBytes)
			}
		}
		require.EqualValues(t, to, next)
	})
}

// Each range of a segment is a block of its place and length: live, pending, or free to the viewer.
func TestBlocksByState(t *testing.T) {
	t.Parallel()
	d := drawing{device: 3, stacks: map[string]snapshot.Stack{}}
	for state := vram.MemoryLive; state <= vram.MemoryMixed; state++ {
		want := snapshot.Free
		if state == vram.MemoryPending {
			want = snapshot.Pending
		}
		s := d.segment(&vram.MemorySegment{Address: 4096, Bytes: 512, Ranges: []vram.MemoryRange{{OffsetBytes: 128, Bytes: 256, State: state}}}, nil)
		assert.Equal(t, snapshot.Segment{
			Device: 3, Address: 4096, Bytes: 512, Expandable: true, Blocks: []snapshot.Block{{Address: 4224, Bytes: 256, State: want}},
		}, s, "%v", state)
	}
}

// A buffer whose request is not known has the stack of its recorded allocation, by its address.
func TestStacksOfBuffers(t *testing.T) {
	t.Parallel()
	here, there := site.Deep(0), site.Deep(0)
	d := drawing{stacks: map[string]snapshot.Stack{}, allocated: []Event{{Ptr: 1, Stack: here}, {Ptr: 2, Stack: there}, {Ptr: 5}}}
	assert.Equal(t, d.stack(here), d.stackOf(&pool.LiveBuffer{Ptr: 1}))
	assert.Equal(t, d.stack(there), d.stackOf(&pool.LiveBuffer{Ptr: 2}))
	frames := there.Frames()
	require.Len(t, d.stack(there), len(frames))
	assert.NotEmpty(t, frames)
	for i, f := range frames {
		assert.Equal(t, snapshot.Frame{File: f.File, Line: f.Line, Function: f.Function}, d.stack(there)[i])
	}
	assert.Equal(t, d.stack(there), d.stackOf(&pool.LiveBuffer{Ptr: 1, Allocated: there}), "its own comes first")
	for _, p := range []vram.Ptr{0, 3, 5, 9} {
		assert.Nil(t, d.stackOf(&pool.LiveBuffer{Ptr: p}))
	}
}

// A device that was closed has no memory to show, and its last recording.
func TestTheMemoryOfAClosedDevice(t *testing.T) {
	t.Parallel()
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	r, err := Start(d, Options{})
	require.NoError(t, err)
	b, err := s.Alloc(40 << 20)
	require.NoError(t, err)
	assert.Len(t, r.Snapshot().Live, 1)
	require.NoError(t, b.Free())
	assert.Empty(t, r.Snapshot().Live)
	_, err = d.Trim(t.Context(), 0)
	require.NoError(t, err)
	r.Stop()
	kinds := map[Kind]int64{}
	for _, e := range r.Events() {
		kinds[e.Kind] += e.Bytes
	}
	assert.Positive(t, kinds[Growth])
	assert.Equal(t, kinds[Growth], kinds[Trim], "all of it, in positive bytes")
	assert.Equal(t, kinds[Mapped], kinds[Unmapped])
	require.NoError(t, d.Close())
	shown, _, err := r.Memory(t.Context())
	require.ErrorIs(t, err, vram.ErrClosed)
	assert.Nil(t, shown)
}
