package sleep_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// checkedDriver has a device that notes which streams' memory may be unmapped, as a checker does.
type checkedDriver struct {
	cudadrv.Driver
	asleep map[cudadrv.Stream]int
}

type checkedDevice struct {
	*sim.Device
	asleep map[cudadrv.Stream]int
}

func (d checkedDriver) Open(ordinal int) (cudadrv.Device, error) {
	opened, err := d.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	device, ok := opened.(*sim.Device)
	if !ok {
		return nil, errors.New("not simulated")
	}
	return checkedDevice{device, d.asleep}, nil
}

func (d checkedDevice) SleepBegins(s cudadrv.Stream) { d.asleep[s]++ }
func (d checkedDevice) SleepEnds(s cudadrv.Stream)   { d.asleep[s]-- }

// A checker knows that memory may be unmapped from the begin of a sleep until it has failed, or panicked, or the arena has woken.
func TestACheckerKnowsWhenMemorySleeps(t *testing.T) {
	asleep := map[cudadrv.Stream]int{}
	faults := fault.Wrap(checkedDriver{sim.New(sim.Config{Bytes: true, TimedKernels: true}), asleep})
	dev, err := vram.Open(vram.Config{Driver: faults})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	a, err := sleep.New(c, sleep.Options{BlockBytes: mib / 2})
	require.NoError(t, err)
	b, err := a.Alloc(mib)
	require.NoError(t, err)
	count := func() (all []int) {
		for _, n := range asleep {
			all = append(all, n)
		}
		return all
	}
	for _, function := range []string{"cuMemHostAlloc", "cuMemcpyDtoHAsync"} {
		require.NoError(t, faults.Add(fault.Rule{Func: function, First: 1, Count: 1, Result: cudadrv.OutOfMemory}))
		require.ErrorIs(t, a.Sleep(t.Context(), sleep.Save), cudadrv.OutOfMemory)
		faults.Clear()
		require.Equal(t, sleep.Awake, a.State())
		assert.Equal(t, []int{0}, count(), function)
		n, err := a.Stats(t.Context())
		require.NoError(t, err)
		assert.Zero(t, n.SavedBytes+n.SleepingBytes)
		assert.Zero(t, n.Sleeps)
	}
	for at, functions := range map[uint64][]string{1: {"cuEventRecord", "cuMemHostAlloc", "cuMemcpyDtoHAsync"}, 2: {"cuMemHostAlloc", "cuMemcpyDtoHAsync"}} {
		for _, function := range functions {
			require.NoError(t, c.Fill8(cuda.Whole(b), 1), "work for which the sleep waits")
			calls := uint64(0)
			faults.SetBefore(func(called string) {
				if called != function {
					return
				}
				if calls++; calls == at {
					panic("planted")
				}
			})
			var err error
			recovered := any(nil)
			func() {
				defer func() { recovered = recover() }()
				err = a.Sleep(t.Context(), sleep.Save)
			}()
			faults.SetBefore(nil)
			require.Equal(t, at, calls, function)
			assert.Contains(t, fmt.Sprint(recovered, err), "planted", function)
			assert.Equal(t, function == "cuMemHostAlloc", recovered != nil, "%s: the host's panic is the caller's", function)
			assert.Equal(t, sleep.Awake, a.State())
			assert.Equal(t, []int{0}, count(), function)
			n, err := a.Stats(t.Context())
			require.NoError(t, err)
			assert.Zero(t, n.SavedBytes+n.SleepingBytes)
			assert.Zero(t, n.Sleeps)
			require.NoError(t, c.Fill8(cuda.Whole(b), 1), "work is not refused")
		}
	}
	for cycle := range uint64(2) {
		require.NoError(t, a.Sleep(t.Context(), sleep.Save))
		assert.Equal(t, []int{1}, count())
		n, err := a.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []any{cycle + 1, cycle, sleep.Asleep}, []any{n.Sleeps, n.Wakes, n.State})
		assert.EqualValues(t, mib, n.SavedBytes)
		assert.Positive(t, n.SleepingBytes)
		require.NoError(t, a.Wake(t.Context()))
		assert.Equal(t, []int{0}, count())
		n, err = a.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []any{cycle + 1, cycle + 1, sleep.Awake}, []any{n.Sleeps, n.Wakes, n.State})
		assert.Zero(t, n.SavedBytes+n.SleepingBytes)
	}
	require.NoError(t, b.Free())
	require.NoError(t, a.Close())
	require.NoError(t, c.Close())
	require.NoError(t, dev.Close())
}
