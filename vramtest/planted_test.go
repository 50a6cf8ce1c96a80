package vramtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// liar is a driver that reports false results to the allocator, or ignores its calls.
type liar struct {
	cudadrv.Driver
	passed    bool // events have passed, in any case
	unmarked  bool // events are never recorded
	impatient bool // synchronising does not wait
}

func (l *liar) Open(ordinal int) (cudadrv.Device, error) {
	inner, err := l.Driver.Open(ordinal)
	return &lyingDevice{inner, l}, err
}

type lyingDevice struct {
	cudadrv.Device
	liar *liar
}

func (d *lyingDevice) EventQuery(e cudadrv.Event) (bool, error) {
	passed, err := d.Device.EventQuery(e)
	return passed || d.liar.passed, err
}

func (d *lyingDevice) EventRecord(e cudadrv.Event, s cudadrv.Stream) error {
	if d.liar.unmarked {
		return nil
	}
	return d.Device.EventRecord(e, s)
}

func (d *lyingDevice) StreamSynchronize(s cudadrv.Stream) error {
	if d.liar.impatient {
		return nil
	}
	return d.Device.StreamSynchronize(s)
}

// An allocator whose fences are broken hands memory out, or unmaps it, too early; with fences that hold it does not.
func TestMistakesOfAnAllocator(t *testing.T) {
	// One stream frees memory under a long kernel, and another one needs it.
	reuse := func(t *testing.T, dev *vramtest.Device) {
		t.Helper()
		one, two := dev.Stream(), dev.Stream()
		b := alloc(t, one, 48<<20)
		dev.Launch(one, time.Second, vramtest.Writes(b))
		require.NoError(t, b.Free())
		c := alloc(t, two, 48<<20)
		dev.Launch(two, time.Second, vramtest.Writes(c))
		require.NoError(t, c.Free())
	}
	// Memory that a long kernel uses is given back to the driver.
	unmap := func(t *testing.T, dev *vramtest.Device) {
		t.Helper()
		s := dev.Stream()
		b := alloc(t, s, 48<<20)
		dev.Launch(s, time.Second, vramtest.Writes(b))
		require.NoError(t, b.Free())
		_, err := dev.Trim(t.Context(), 0)
		require.NoError(t, err)
	}
	// A stream is closed under a long kernel, and another one gets its memory.
	closing := func(t *testing.T, dev *vramtest.Device) {
		t.Helper()
		one, two := dev.Stream(), dev.Stream()
		b := alloc(t, one, 48<<20)
		dev.Launch(one, time.Second, vramtest.Writes(b))
		require.NoError(t, b.Free())
		require.NoError(t, one.Close())
		require.NoError(t, alloc(t, two, 48<<20).Free())
	}
	for name, c := range map[string]struct {
		lies    liar
		program func(t *testing.T, dev *vramtest.Device)
		kinds   []hazard.Kind
	}{
		"fences that pass at once, and reuse":           {liar{passed: true}, reuse, []hazard.Kind{hazard.EarlyReuse}},
		"fences that pass at once, and a trim":          {liar{passed: true}, unmap, []hazard.Kind{hazard.EarlyUnmap}},
		"fences that are never taken, and reuse":        {liar{unmarked: true}, reuse, []hazard.Kind{hazard.EarlyReuse}},
		"fences that are never taken, and a trim":       {liar{unmarked: true}, unmap, []hazard.Kind{hazard.EarlyUnmap}},
		"a stream that is closed without waiting":       {liar{impatient: true}, closing, []hazard.Kind{hazard.EarlyReuse}},
		"reuse with fences that hold":                   {liar{}, reuse, nil},
		"a trim with fences that hold":                  {liar{}, unmap, nil},
		"a stream that is closed when its work is over": {liar{}, closing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			other := &sheet{}
			dev := vramtest.Open(other, vramtest.Expected(),
				vramtest.Machine(sim.Config{TotalBytes: 64 << 20}),
				vramtest.Config(vram.Config{Footprint: vram.Lean}),
				vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
					c.lies.Driver = inner
					return &c.lies
				}))
			c.program(t, dev)
			var kinds []hazard.Kind
			for _, r := range dev.Hazards() {
				kinds = append(kinds, r.Kind)
				assert.Contains(t, r.Before.Place.String(), "TestMistakesOfAnAllocator")
				assert.Contains(t, r.String(), "freed at\n    vramtest_test.TestMistakesOfAnAllocator")
			}
			assert.Equal(t, c.kinds, kinds)
			other.end()
			assert.Empty(t, other.failures)
		})
	}
}
