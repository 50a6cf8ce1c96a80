package acceptance_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/cudadrv/sim"
)

// An invalid config is refused before the driver is touched, with the field, its value and the
// valid ones.
func TestConfigErrorsNameFieldValueAndWant(t *testing.T) {
	wrong := map[string]vram.Config{
		"Ordinal":                  {Ordinal: -7},
		"LimitBytes":               {LimitBytes: -7},
		"MemoryFraction":           {MemoryFraction: -7},
		"StreamCacheBytes":         {StreamCacheBytes: -7},
		"PoolCacheBytes":           {PoolCacheBytes: -7},
		"Tuning.SegmentBytes":      {Tuning: vram.Tuning{SegmentBytes: -7}},
		"Tuning.PressureMark":      {Tuning: vram.Tuning{PressureMark: -7}},
		"Tuning.StreamCacheBlocks": {Tuning: vram.Tuning{StreamCacheBlocks: -7}},
		"Tuning.PoolCacheBlocks":   {Tuning: vram.Tuning{PoolCacheBlocks: -7}},
		"Warm[1]":                  {Warm: []vram.Demand{{Bytes: 1, Count: 1}, {Bytes: 5, Count: -7}}},
		"Footprint":                {Footprint: 77},
		"Segments":                 {Segments: 77},
		"Stats":                    {Stats: 77},
	}
	for field, cfg := range wrong {
		t.Run(field, func(t *testing.T) {
			driver := sim.New(sim.Config{})
			cfg.Driver = driver
			_, err := vram.Open(cfg)
			var bad *vram.ConfigError
			require.ErrorAs(t, err, &bad)
			assert.Equal(t, field, bad.Field)
			assert.NotEmpty(t, bad.Want)
			for _, part := range []string{field, "7", bad.Want} {
				assert.Contains(t, err.Error(), part)
			}
			assert.Empty(t, driver.Device(0).Counts(), "the driver was not called")
		})
	}
	for _, fraction := range []float64{1.0001, math.Inf(1), math.NaN()} {
		_, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), MemoryFraction: fraction})
		require.ErrorContains(t, err, "MemoryFraction")
	}
	_, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), Warm: []vram.Demand{{Bytes: 0, Count: 1}}})
	require.ErrorContains(t, err, "Warm[0]")
}

// Without a GPU there is no device: the simulator is never opened by itself.
func TestOpenWithoutAGPU(t *testing.T) {
	_, err := vram.Open(vram.Config{Driver: dynamic.New(dynamic.Config{Library: filepath.Join(t.TempDir(), "libcuda.so.1")})})
	require.ErrorIs(t, err, vram.ErrNoDriver)
	_, err = vram.Open(vram.Config{Driver: sim.New(sim.Config{Devices: 2}), Ordinal: 2})
	require.ErrorIs(t, err, vram.ErrNoDevice)
	require.ErrorContains(t, err, "2")
	_, err = vram.Open(vram.Config{Driver: sim.New(sim.Config{Devices: -1})})
	require.ErrorIs(t, err, vram.ErrNoDriver)
}

// The zero Config is the GPU's driver: it opens one or says why not.
func TestOpenWithoutADriver(t *testing.T) {
	d, err := vram.Open(vram.Config{})
	if err != nil {
		assert.True(t, errors.Is(err, vram.ErrNoDriver) || errors.Is(err, vram.ErrNoDevice), "%v", err)
		return
	}
	assert.Equal(t, "dynamic", d.Info().Driver)
	require.NoError(t, d.Close())
}

func TestDriverNamed(t *testing.T) {
	for _, name := range []string{"sim", "dynamic"} {
		d, err := vram.DriverNamed(name)
		require.NoError(t, err)
		assert.Equal(t, name, d.Name())
	}
	_, err := vram.DriverNamed("tpu")
	var bad *vram.ConfigError
	require.ErrorAs(t, err, &bad)
	assert.Equal(t, "tpu", bad.Value)
}

func TestNamesAreReadAsTheyAreWritten(t *testing.T) {
	for _, l := range []vram.StatsLevel{vram.StatsOn, vram.StatsOff, vram.StatsExact} {
		read, err := vram.ParseStatsLevel(l.String())
		require.NoError(t, err)
		assert.Equal(t, l, read)
	}
	for _, k := range []vram.Segments{vram.SegmentsAuto, vram.SegmentsVMM, vram.SegmentsPlain} {
		read, err := vram.ParseSegments(k.String())
		require.NoError(t, err)
		assert.Equal(t, k, read)
	}
	_, err := vram.ParseStatsLevel("loud")
	require.ErrorContains(t, err, "loud")
	_, err = vram.ParseSegments("round")
	require.ErrorContains(t, err, "round")
}

func TestFootprintNamesAreReadAsTheyAreWritten(t *testing.T) {
	for _, f := range []vram.Footprint{vram.Balanced, vram.Lean, vram.Fast} {
		read, err := vram.ParseFootprint(f.String())
		require.NoError(t, err)
		assert.Equal(t, f, read)
	}
	assert.Equal(t, "Footprint(9)", vram.Footprint(9).String())
	_, err := vram.ParseFootprint("small")
	require.ErrorContains(t, err, "small")
}

// A size is read in every unit, in any case and with any spaces.
func TestParseBytesReadsWhatIsWritten(t *testing.T) {
	units := map[string]int64{
		"": 1, "B": 1, "K": 1 << 10, "KiB": 1 << 10, "kB": 1e3, "M": 1 << 20, "MiB": 1 << 20, "MB": 1e6,
		"G": 1 << 30, "GiB": 1 << 30, "GB": 1e9, "T": 1 << 40, "TiB": 1 << 40, "TB": 1e12,
	}
	names := []string{"", "B", "K", "KiB", "kB", "M", "MiB", "MB", "G", "GiB", "GB", "T", "TiB", "TB"}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom(names).Draw(t, "unit")
		count := rapid.Int64Range(0, 1<<61/units[unit]).Draw(t, "count")
		space := rapid.SampledFrom([]string{"", " ", "  "}).Draw(t, "space")
		written := unit
		if rapid.Bool().Draw(t, "lower") {
			written = strings.ToLower(unit)
		}
		got, err := vram.ParseBytes(fmt.Sprintf("%s%d%s%s%s", space, count, space, written, space))
		require.NoError(t, err)
		assert.Equal(t, count*units[unit], got)
	})
	half, err := vram.ParseBytes("1.5G")
	require.NoError(t, err)
	assert.Equal(t, 3*gib/2, half)
}

// A text that is no size is refused, with the text.
func TestParseBytesRefusesWhatIsNoSize(t *testing.T) {
	for _, text := range []string{"", "x", "GB", "-1", "-1GB", "1 2", "1e3", "1 parsec", "ib", "1ib", "NaN", "inf", "0x10", "99999999TB", "1.2.3G"} {
		_, err := vram.ParseBytes(text)
		var bad *vram.ConfigError
		require.ErrorAs(t, err, &bad, "%q", text)
		assert.Contains(t, err.Error(), fmt.Sprintf("%q", text))
	}
	rapid.Check(t, func(t *rapid.T) { // and nothing else than an error or a size comes of any text
		n, err := vram.ParseBytes(rapid.String().Draw(t, "text"))
		if err != nil {
			assert.Zero(t, n)
		}
		assert.GreaterOrEqual(t, n, int64(0))
	})
}
