package baseline_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/baseline"
)

const rounds = 3

// expected is the figures of a way, from counts of live buffers alone: no list, no driver.
type expected struct {
	peakBytes, driverCalls int64
	hits, misses           []int64
}

func held(bytes int64) int64 {
	step := int64(512)
	if bytes > sim.DefaultGranularityBytes {
		step = sim.DefaultGranularityBytes
	}
	return (bytes + step - 1) / step * step
}

func expect(tr *trace.Trace, way baseline.Way) (x expected) {
	live, most := map[int64]int64{}, map[int64]int64{}
	var plainBytes, plainPeak int64
	size := make([]int64, tr.Info.AllocCount)
	for range rounds {
		var misses, allocs, calls int64
		for _, e := range tr.Events {
			if e.Op == trace.Alloc {
				size[e.ID] = e.Bytes
				allocs++
				live[e.Bytes]++
				if live[e.Bytes] > most[e.Bytes] {
					most[e.Bytes] = live[e.Bytes]
					misses++
				}
				plainBytes += held(e.Bytes)
				plainPeak = max(plainPeak, plainBytes)
			} else {
				live[size[e.ID]]--
				plainBytes -= held(size[e.ID])
			}
		}
		for _, id := range tr.Leftovers() {
			live[size[id]]--
			plainBytes -= held(size[id])
		}
		if calls = misses; way == baseline.Plain {
			misses, calls = allocs, 2*allocs
		}
		x.hits, x.misses, x.driverCalls = append(x.hits, allocs-misses), append(x.misses, misses), x.driverCalls+calls
	}
	x.peakBytes = plainPeak
	if way == baseline.BySize {
		x.peakBytes = 0
		for bytes, count := range most {
			x.peakBytes += held(bytes) * count
		}
	}
	return x
}

// check compares a way with the expectation, and with the memory that the device counts.
func check(t require.TestingT, tr *trace.Trace, way baseline.Way) {
	machine := sim.New(sim.Config{TotalBytes: 4 << 40})
	keeper, err := machine.Open(0)
	require.NoError(t, err)
	usedBytes := func() int64 {
		free, total, err := keeper.MemGetInfo()
		require.NoError(t, err)
		return total - free
	}
	most := &watched{Driver: machine, used: usedBytes}
	r, err := baseline.Run(context.Background(), tr, way, baseline.Options{Driver: most, Rounds: rounds})
	require.NoError(t, err)
	x := expect(tr, way)
	assert.Equal(t, x.peakBytes, r.PeakReservedBytes)
	assert.Equal(t, most.peak, r.PeakReservedBytes, "as the device counts it")
	var calls uint64
	for i := range r.Rounds {
		assert.Equal(t, uint64(x.hits[i]), r.Rounds[i].Hits, "round %d", i)     //nolint:gosec // not negative
		assert.Equal(t, uint64(x.misses[i]), r.Rounds[i].Misses, "round %d", i) //nolint:gosec // not negative
		assert.Zero(t, r.Rounds[i].FailedCount)
		assert.Equal(t, r.Rounds[i].DriverCalls > 0, r.Rounds[i].Driver > 0)
		calls += r.Rounds[i].DriverCalls
	}
	assert.Equal(t, uint64(x.driverCalls), calls) //nolint:gosec // not negative
	assert.Zero(t, usedBytes(), "all memory went back")
	require.NoError(t, keeper.Close())
}

// watched looks at the device's memory after each allocation.
type watched struct {
	cudadrv.Driver
	used func() int64
	peak int64
}

func (w *watched) Open(ordinal int) (cudadrv.Device, error) {
	d, err := w.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	modelled, _ := d.(cudadrv.Modelled)
	return &watchedDevice{d, modelled, w}, nil
}

type watchedDevice struct {
	cudadrv.Device
	cudadrv.Modelled
	on *watched
}

func (d *watchedDevice) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	p, err := d.Device.MemAlloc(bytes)
	d.on.peak = max(d.on.peak, d.on.used())
	return p, err
}

func TestEmbeddedTraces(t *testing.T) {
	names := trace.Embedded()
	require.NotEmpty(t, names)
	for _, name := range names {
		tr, err := trace.Open(name)
		require.NoError(t, err)
		for _, way := range baseline.Ways() {
			t.Run(fmt.Sprintf("%s/%s", name, way), func(t *testing.T) { check(t, tr, way) })
		}
	}
}

func TestRandomTraces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := []int64{1, 512, 513, 4096, 2 << 20, 2<<20 + 1, 5 << 20}
		var live []int
		var size []int64
		var text strings.Builder
		text.WriteString("t_us,op,id,size,stream\n")
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				fmt.Fprintf(&text, "0,f,%d,%d,0\n", live[i], size[live[i]])
				live = append(live[:i], live[i+1:]...)
				continue
			}
			size = append(size, rapid.SampledFrom(sizes).Draw(t, "size"))
			live = append(live, len(size)-1)
			fmt.Fprintf(&text, "0,a,%d,%d,0\n", len(size)-1, size[len(size)-1])
		}
		tr, err := trace.Read("random", strings.NewReader(text.String()))
		require.NoError(t, err)
		for _, way := range baseline.Ways() {
			check(t, tr, way)
		}
	})
}

func TestATraceThatDoesNotFit(t *testing.T) {
	tr, err := trace.Read("large", strings.NewReader("t_us,op,id,size,stream\n0,a,0,8388608,0\n0,a,1,8388608,0\n0,f,0,8388608,0\n0,f,1,8388608,0\n"))
	require.NoError(t, err)
	for _, way := range baseline.Ways() {
		r, err := baseline.Run(t.Context(), tr, way, baseline.Options{Driver: sim.New(sim.Config{TotalBytes: 10 << 20}), Rounds: 1})
		require.NoError(t, err)
		assert.Equal(t, 1, r.Rounds[0].FailedCount, way)
		assert.Equal(t, int64(8<<20), r.PeakReservedBytes)
	}
}

// Whichever call fails, all memory goes back that the driver takes back.
func TestAFailedCallLeavesNothing(t *testing.T) {
	tr, err := trace.Read("short", strings.NewReader("t_us,op,id,size,stream\n0,a,0,4096,0\n0,a,1,8192,0\n0,f,0,4096,0\n0,a,2,512,0\n0,f,1,8192,0\n"))
	require.NoError(t, err)
	for _, way := range baseline.Ways() {
		for call := uint64(1); call <= 3; call++ {
			machine := sim.New(sim.Config{})
			keeper, err := machine.Open(0)
			require.NoError(t, err)
			faults := fault.Wrap(machine)
			require.NoError(t, faults.Add(fault.Rule{Func: "cuMemAlloc", First: call, Count: 1, Result: cudadrv.Unknown}))
			_, err = baseline.Run(t.Context(), tr, way, baseline.Options{Driver: faults, Rounds: 1})
			require.ErrorIs(t, err, cudadrv.Unknown)
			free, total, err := keeper.MemGetInfo()
			require.NoError(t, err)
			assert.Equal(t, total, free)
			require.NoError(t, keeper.Close())
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = baseline.Run(ended, tr, baseline.Plain, baseline.Options{Driver: sim.New(sim.Config{}), Rounds: 1})
	require.ErrorIs(t, err, context.Canceled)
	_, err = baseline.Run(t.Context(), tr, "by magic", baseline.Options{Driver: sim.New(sim.Config{}), Rounds: 1})
	require.ErrorContains(t, err, `no way "by magic"`)
}
