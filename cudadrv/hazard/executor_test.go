package hazard_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
)

// recorder is an executor that notes its calls, and stands in for one library.
type recorder struct {
	claimed  []cudadrv.Access
	launched [][]cudadrv.Access // with nil for none declared
	works    []string
	refusal  error // of launches
}

func (r *recorder) Load([]byte, map[string]sim.Variable) (sim.Program, error) { return r, nil }
func (r *recorder) Queued(sim.Transfer) func()                                { return nil }

func (r *recorder) Claimed(p cudadrv.Ptr, bytes int64) {
	r.claimed = append(r.claimed, cudadrv.Access{Ptr: p, Bytes: bytes, Write: true})
}

func (r *recorder) Launch(k sim.KernelLaunch) (sim.Execution, error) {
	r.launched = append(r.launched, k.Accesses)
	return func(func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool)) error { return nil }, r.refusal
}

func (r *recorder) Library(w cudadrv.LibraryWork) sim.Execution {
	if w.Library != "stands" {
		return nil
	}
	r.works = append(r.works, w.Library)
	return func(func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool)) error { return nil }
}

// A simulated device that executes kernels gets the program's declarations, claims writes of work that it does not execute, and
// executes a library's work where something stands in for it.
func TestADeviceThatExecutesLearnsOfAccesses(t *testing.T) {
	r := &recorder{}
	y := newYardOf(t, sim.Config{Bytes: true, Executor: r})
	f := y.kernel()
	y.alloc(4096, y.one)
	both := []cudadrv.Access{{Ptr: y.arena, Bytes: 16}, {Ptr: y.arena + 64, Bytes: 32, Write: true}}
	y.launch(f, y.one, both)
	require.NoError(t, y.LaunchKernel(f, block, make([]byte, 8), y.one))
	assert.Equal(t, [][]cudadrv.Access{both, nil}, r.launched)
	g := y.captured(func() { y.launch(f, y.one, both) })
	x, err := y.GraphInstantiate(g)
	require.NoError(t, err)
	nodes, err := y.GraphGetNodes(g)
	require.NoError(t, err)
	require.NoError(t, y.KernelNodeSetParamsTouching(x, nodes[0], f, block, make([]byte, 8), both[1:]))
	assert.Equal(t, both[1:], r.launched[3])
	r.refusal = errors.New("planted")
	require.ErrorIs(t, y.KernelNodeSetParamsTouching(x, nodes[0], f, block, make([]byte, 8), both), r.refusal)
	require.ErrorIs(t, y.LaunchKernelTouching(f, block, make([]byte, 8), y.one, both), r.refusal)
	assert.Empty(t, r.claimed)

	require.NoError(t, y.Kernel(y.one, time.Second, both...))
	assert.Equal(t, both[1:], r.claimed)
	submitted := 0
	submit := func() error { submitted++; return nil }
	work := func(library string) cudadrv.LibraryWork {
		return cudadrv.LibraryWork{Library: library, Arguments: []cudadrv.LibraryArgument{{Ptr: y.arena, Bytes: 8, Write: true}}}
	}
	require.NoError(t, y.WorkTouching(work("does not"), y.one, submit))
	assert.Equal(t, 1, submitted)
	assert.Equal(t, cudadrv.Access{Ptr: y.arena, Bytes: 8, Write: true}, r.claimed[1])
	require.NoError(t, y.WorkTouching(work("stands"), y.one, submit))
	assert.Equal(t, 1, submitted, "the simulated work is in its place")
	assert.Equal(t, []string{"stands"}, r.works)
	assert.Len(t, r.claimed, 2)
	require.ErrorIs(t, y.WorkTouching(work("stands"), 12345, submit), cudadrv.InvalidHandle)
	assert.Equal(t, 1, submitted)
	require.NoError(t, y.checker.Err())
	require.NoError(t, y.Kernel(y.two, 0, hazard.Access{Ptr: y.arena, Bytes: 1}))
	assert.Equal(t, []hazard.Kind{hazard.Race}, y.kinds())
}
