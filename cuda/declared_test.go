package cuda

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// An argument declares exactly the accesses that its function names: Out no read, In no write.
func TestWhatArgumentsDeclare(t *testing.T) {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	b, err := s.Alloc(4096)
	require.NoError(t, err)
	part := func(write bool) cudadrv.Access { return cudadrv.Access{Ptr: b.Ptr() + 8, Bytes: 16, Write: write} }
	for name, test := range map[string]struct {
		mark        func(Buffer) Arg
		read, write bool
	}{"In": {In, true, false}, "Out": {Out, false, true}, "InOut": {InOut, true, true}} {
		a := test.mark(b).Of(8, 16)
		var want []cudadrv.Access
		if test.read {
			want = append(want, part(false))
		}
		if test.write {
			want = append(want, part(true))
		}
		assert.Equal(t, want, a.accesses(), name)
		assert.Equal(t, test.write, a.writes(), name)
		assert.Equal(t, []cudadrv.LibraryArgument{{Ptr: b.Ptr() + 8, Bytes: 16, Read: test.read, Write: test.write}}, libraryArguments([]Arg{a}), name)
	}
	for _, test := range []struct {
		arg  Arg
		want []byte
	}{
		{Value(uint8(0x12)), []byte{0x12}},
		{Value(uint16(0x1234)), []byte{0x34, 0x12}},
		{Value(uint32(0x12345678)), []byte{0x78, 0x56, 0x34, 0x12}},
		{Value(uint64(0x1234567890abcdef)), []byte{0xef, 0xcd, 0xab, 0x90, 0x78, 0x56, 0x34, 0x12}},
		{Value([3]uint8{1, 2, 3}), []byte{1, 2, 3}},
		{Null(), make([]byte, 8)},
	} {
		assert.Empty(t, test.arg.accesses())
		assert.Equal(t, []cudadrv.LibraryArgument{{Value: test.want}}, libraryArguments([]Arg{test.arg}))
	}
	require.NoError(t, b.Free())
	require.NoError(t, dev.Close())
}

// A call that waits for a change of a graph, and finds the graph closed after it, leaves the gate.
func TestAGateThatClosesAfterAChange(t *testing.T) {
	for range 100 {
		var g gate
		g.init()
		g.mu.Lock()
		g.change()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { assert.ErrorIs(t, g.enter(), ErrGraphClosed) })
		}
		for range 100 { // the calls wait for the change
			runtime.Gosched()
		}
		for g.state.Load() != changingGate {
			runtime.Gosched()
		}
		g.state.Add(closedGate - changingGate)
		g.mu.Unlock()
		all.Wait()
		require.Equal(t, closedGate, g.state.Load())
	}
}
