//go:build linux && (amd64 || arm64)

package bytecheck

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

const mib = 1 << 20

// scale is how large the scenarios are.
type scale struct {
	load    Load
	lasting func(t *testing.T) context.Context // how long each load is
	fill    bool                               // plain allocations fill the card before memory runs out
}

// smallScale is for the fake: seconds, and in the short form half as many steps.
func smallScale() scale {
	steps := 300
	if testing.Short() {
		steps /= 2
	}
	return scale{
		load: Load{
			Streams: 6, Workers: 8, Steps: steps, Seed: 1,
			LiveBytes: 96 * mib, LargestBytes: 6 * mib, HostBytes: 4 * mib, Residents: 3,
		},
		lasting: func(t *testing.T) context.Context { t.Helper(); return t.Context() },
		fill:    true,
	}
}

// run does a load and wants every byte right.
func (h *House) run(t *testing.T, of scale, load Load) Report {
	t.Helper()
	report, err := h.Run(of.lasting(t), load)
	require.NoError(t, err)
	t.Logf("%+v", report)
	n := h.Stats()
	t.Logf("peaks: live %d, reserved %d; driver calls %d; mapped %d, unmapped %d", n.PeakLiveBytes, n.PeakReservedBytes,
		n.DriverCalls, h.Calls("cuMemMap"), h.Calls("cuMemUnmap"))
	assert.Positive(t, report.CheckedBytes)
	assert.Positive(t, report.CrossCount)
	assert.Positive(t, report.UseCount)
	assert.Positive(t, report.TransferCount)
	assert.Zero(t, n.LiveBytes)
	return report
}

// openHouse opens a house that is closed at the end.
func openHouse(t *testing.T, driver cudadrv.Driver, config vram.Config) *House {
	t.Helper()
	config.Driver = driver
	h, err := Open(driver, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

// steadily is a load with nothing in its way, in each footprint mode and with plain segments.
func steadily(t *testing.T, driver cudadrv.Driver, of scale) {
	t.Helper()
	for name, config := range map[string]vram.Config{
		"balanced": {},
		"lean":     {Footprint: vram.Lean},
		"fast":     {Footprint: vram.Fast},
		"plain":    {Segments: vram.SegmentsPlain, Tuning: vram.Tuning{SegmentBytes: 32 * mib}},
		"exact":    {Stats: vram.StatsExact},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHouse(t, driver, config)
			assert.Zero(t, h.run(t, of, of.load).RefusalCount)
		})
	}
}

// recycled runs a load twice: to measure the peak, and with a limit of 1.05 times the peak; then once more, with Trims.
func recycled(t *testing.T, driver cudadrv.Driver, of scale) {
	t.Helper()
	wide := openHouse(t, driver, vram.Config{Footprint: vram.Lean})
	peakBytes := wide.run(t, of, of.load).PeakLiveBytes
	_, err := wide.Trim(t.Context(), 0)
	require.NoError(t, err)

	tight := openHouse(t, driver, vram.Config{Footprint: vram.Lean, LimitBytes: peakBytes + peakBytes/20})
	load := of.load
	tight.run(t, of, load)
	load.TrimSteps = 50
	tight.run(t, of, load)
	assert.Positive(t, tight.Calls("cuMemUnmap"), "nothing was given back or mapped elsewhere")
	assert.LessOrEqual(t, tight.Stats().PeakReservedBytes, peakBytes+peakBytes/20)
}

// returned is warm-up, load, Trim, out of memory and Close, twice. The first time creates the memory of the context itself;
// the second must leave the driver as much free memory as before it.
func returned(t *testing.T, driver cudadrv.Driver, of scale) {
	t.Helper()
	outer := openHouse(t, driver, vram.Config{}) // keeps the context
	round := func() {
		h, err := Open(driver, vram.Config{Driver: driver})
		require.NoError(t, err)
		defer func() { require.NoError(t, h.Close()) }()
		before, err := h.FreeBytes()
		require.NoError(t, err)
		require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: of.load.LargestBytes, Count: 8}))
		warm, err := h.FreeBytes()
		require.NoError(t, err)
		require.LessOrEqual(t, warm, before-8*of.load.LargestBytes)
		h.run(t, of, of.load)
		_, err = h.Trim(t.Context(), 0)
		require.NoError(t, err)
		assert.Zero(t, h.Stats().ReservedBytes)

		if of.fill {
			taken, err := h.Fill(of.load.LiveBytes / 2)
			require.NoError(t, err)
			t.Logf("filled with %d", taken)
		} else {
			require.NoError(t, h.Reconfigure(vram.Settings{LimitBytes: new(of.load.LiveBytes / 2)}))
		}
		assert.Positive(t, h.run(t, of, of.load).RefusalCount, "memory has not run out")
	}
	round()
	before, err := outer.FreeBytes()
	require.NoError(t, err)
	round()
	after, err := outer.FreeBytes()
	require.NoError(t, err)
	assert.Equal(t, before, after, "free bytes of the device")
}
