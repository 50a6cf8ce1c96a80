package sleep_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/leaks"
	"github.com/go-vram/vram/vramtest"
)

func TestMain(m *testing.M) { leaks.Main(m) }

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	ptx = `.version 7.0
.target sm_70
.address_size 64
.visible .entry touch(.param .u64 x) { ret; }
`
)

// rig is a checked device of real bytes with an arena.
type rig struct {
	testing.TB
	dev    *vramtest.Device
	c      *cuda.Context
	touch  *cuda.Function
	arena  *sleep.Arena
	faults *fault.Driver // of newFaultyRig
	got    []byte        // of holds
}

func newRig(tb testing.TB, o sleep.Options, options ...vramtest.Option) *rig {
	tb.Helper()
	r := &rig{TB: tb}
	r.open(o, options...)
	return r
}

// newFaultyRig returns a rig on which driver calls may fail.
func newFaultyRig(tb testing.TB, o sleep.Options, options ...vramtest.Option) *rig {
	tb.Helper()
	r := &rig{TB: tb}
	r.open(o, append(options, vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
		r.faults = fault.Wrap(inner)
		return r.faults
	}))...)
	return r
}

func (r *rig) open(o sleep.Options, options ...vramtest.Option) {
	tb := r.TB
	tb.Helper()
	all := []vramtest.Option{vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true}), vramtest.Config(vram.Config{Debug: true})}
	r.dev = vramtest.Open(tb, append(all, options...)...)
	r.c = r.context()
	m, err := r.c.LoadModule([]byte(ptx))
	require.NoError(tb, err)
	r.touch, err = m.Function("touch")
	require.NoError(tb, err)
	r.arena, err = sleep.New(r.c, o)
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, r.arena.Close()) })
}

func (r *rig) context() *cuda.Context {
	r.Helper()
	c, err := cuda.NewContext(r.dev.Stream())
	require.NoError(r, err)
	r.Cleanup(func() { assert.NoError(r, c.Close()) })
	return c
}

// filled returns a buffer of the arena with random bytes.
func (r *rig) filled(byteCount int64, seed uint64) (cuda.Buffer, []byte) {
	r.Helper()
	b, err := r.arena.Alloc(byteCount)
	require.NoError(r, err)
	r.Cleanup(func() {
		if err := b.Free(); err != nil && !errors.Is(err, vram.ErrBadFree) {
			assert.ErrorIs(r, err, vram.ErrClosed)
		}
	})
	return b, r.fill(b, seed)
}

// fill writes random bytes into a buffer.
func (r *rig) fill(b cuda.Buffer, seed uint64) []byte {
	r.Helper()
	want := randomBytes(b.Bytes(), seed)
	require.NoError(r, cuda.CopyIn(r.c, b, want))
	return want
}

// holds checks the bytes of a buffer.
func (r *rig) holds(b cuda.Buffer, want []byte) {
	r.Helper()
	if int64(len(r.got)) < b.Bytes() {
		r.got = make([]byte, b.Bytes())
	}
	got := r.got[:b.Bytes()]
	clear(got)
	require.NoError(r, cuda.CopyOut(r.c, got, b))
	assert.True(r, bytes.Equal(want, got), "the bytes of %v differ", b)
}

func (r *rig) freeBytes() int64 {
	r.Helper()
	free, _, err := r.dev.GPU().MemGetInfo()
	require.NoError(r, err)
	return free
}

func randomBytes(n int64, seed uint64) []byte {
	words := make([]byte, (n+7)&^7)
	for i := 0; i < len(words); i += 8 {
		seed = seed*6364136223846793005 + 1442695040888963407 // a step of a linear congruential generator
		binary.LittleEndian.PutUint64(words[i:], seed)
	}
	return words[:n]
}
