package pool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// onDevice are settings with which clients wait on the device rather than break the budget.
func onDevice(s core.Settings) core.Settings {
	s.Waits = core.WaitsAvoidGrowth
	return s
}

// A client gets pages whose fence has not passed once its stream was made to wait for it. The mark
// that it waits for is the least that covers them, and it lives until then.
func TestAClientFollowsAnothersFence(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, onDevice(roomy(8)))
		a, b := h.testClient(1), h.testClient(2)
		run, _, last := a.must(4), a.must(1), a.must(3)
		require.NoError(t, h.sim.Occupy(a.stream, time.Second))
		a.free(run)
		require.NoError(t, h.sim.Occupy(a.stream, time.Hour))
		a.free(last)
		got := b.must(4)
		assert.Equal(t, run, got)
		b.touch(got)
		assert.Zero(t, h.sim.Now())
		e, err := h.device.EventCreate()
		require.NoError(t, err)
		require.NoError(t, h.device.EventRecord(e, b.stream))
		until, _ := h.sim.Passes(e)
		assert.GreaterOrEqual(t, until, time.Second)
		assert.Less(t, until, time.Hour, "not for what came after")
		require.NoError(t, h.device.EventDestroy(e))
	})
}

// A wait that fails, or panics, costs the wait: the fence is waited for on the host.
func TestAWaitThatFails(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(h *house){
		"error": func(h *house) {
			require.NoError(h.t, h.faults.Add(fault.Rule{Func: "cuStreamWaitEvent", Result: cudadrv.Unknown}))
		},
		"panic": func(h *house) {
			h.faults.SetBefore(func(function string) {
				if function == "cuStreamWaitEvent" {
					panic(recoveredtest.Planted("planted"))
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t, onDevice(roomy(8)))
			a, b := h.testClient(1), h.testClient(2)
			run := a.must(8)
			require.NoError(t, h.sim.Occupy(a.stream, time.Second))
			a.free(run)
			plant(h)
			assert.Equal(t, run, b.must(8))
			assert.Equal(t, time.Second, h.sim.Now())
			assert.EqualValues(t, 1, h.faults.Calls("cuStreamWaitEvent"))
		})
	}
}

// A Return whose fence has passed already, with an earlier Return of the same fence, is clean.
func TestAFenceOfSeveralReturns(t *testing.T) {
	t.Parallel()
	h := build(t, waiting(roomy(8), core.WaitsNever))
	a, b := h.testClient(1), h.testClient(2)
	first, second := a.must(4), a.must(4)
	a.use(-8)
	require.NoError(t, h.sim.Occupy(a.stream, time.Second))
	mark, err := h.fences.Record(a.stream)
	require.NoError(t, err)
	h.pool.Return(core.Return{Client: 1, Runs: []core.Run{first}, Fence: 40}, mark)
	h.sim.Advance(time.Second)
	h.pool.Tick()
	for h.snapshot().PendingBytes > 0 {
		h.pool.Tick()
	}
	h.pool.Return(core.Return{Client: 1, Runs: []core.Run{second}, Fence: 40}, fence.Mark{})
	assert.Zero(t, h.snapshot().PendingBytes)
	assert.EqualValues(t, 8, b.must(8).Pages)
}
