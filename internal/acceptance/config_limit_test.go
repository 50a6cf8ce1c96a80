package acceptance_test

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A limit below one page would let nothing be allocated: the first use refuses it and names the
// least limit.
func TestALimitBelowAPageIsRefused(t *testing.T) {
	for field, cfg := range map[string]vram.Config{
		"LimitBytes":     {LimitBytes: 2*mib - 1},
		"MemoryFraction": {MemoryFraction: 1e-9},
	} {
		cfg.Driver = sim.New(sim.Config{TotalBytes: gib})
		d, err := vram.Open(cfg)
		require.NoError(t, err)
		_, err = d.NewStream()
		var bad *vram.ConfigError
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, field, bad.Field)
		assert.Contains(t, err.Error(), "2097152")
		require.NoError(t, d.Reconfigure(vram.Settings{LimitBytes: new(2 * mib)}), "before the first use it is only noted")
		s, err := d.NewStream()
		require.NoError(t, err)
		freeAll(t, must(t, s, 2*mib))
		require.ErrorAs(t, d.Reconfigure(vram.Settings{LimitBytes: new(int64(1))}), &bad)
		assert.Equal(t, "LimitBytes", bad.Field)
		assert.Equal(t, 2*mib, d.Stats().LimitBytes, "nothing was changed")
		require.NoError(t, d.Close())
	}
}

// A limit above the device's memory bounds nothing: the memory is the limit, and a logger hears of
// it.
func TestALimitAboveTheDeviceIsItsMemory(t *testing.T) {
	for _, limit := range []int64{0, 3 * gib / 4, gib, gib + 1, 1 << 62, math.MaxInt64} {
		var log strings.Builder
		d, err := vram.Open(vram.Config{
			Driver: sim.New(sim.Config{TotalBytes: gib}), LimitBytes: limit, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		own := min(cmp.Or(limit, gib), gib)
		assert.Equal(t, own, d.Stats().LimitBytes)
		_, err = s.Alloc(gib + 1)
		require.ErrorIs(t, err, vram.ErrTooLarge)
		freeAll(t, must(t, s, gib/2))
		require.NoError(t, d.Close())
		if limit <= gib {
			assert.NotContains(t, log.String(), "above the device's memory")
			continue
		}
		assert.Contains(t, log.String(), fmt.Sprintf("wantedBytes=%d limitBytes=%d", limit, gib))
	}
}

// Sizes that cannot be counted in pages are no smaller ones.
func TestSizesNearTheEndOfTheRange(t *testing.T) {
	for _, size := range []int64{1 << 53, 1 << 62, math.MaxInt64} {
		d, err := vram.Open(vram.Config{
			Driver: sim.New(sim.Config{TotalBytes: gib}), StreamCacheBytes: size, PoolCacheBytes: size,
			Tuning: vram.Tuning{SegmentBytes: size, StreamCacheBlocks: math.MaxInt, PoolCacheBlocks: math.MaxInt},
		})
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		freeAll(t, must(t, s, 20*mib), must(t, s, kib))
		_, err = s.Alloc(size)
		require.ErrorIs(t, err, vram.ErrTooLarge)
		require.ErrorIs(t, s.AllocBatch(make([]vram.Buffer, 2), []int64{size, size}), vram.ErrTooLarge)
		_, err = d.Reserve(t.Context(), size)
		require.ErrorIs(t, err, vram.ErrTooLarge)
		var full *vram.LimitError
		require.ErrorAs(t, d.Warm(t.Context(), vram.Demand{Bytes: size, Count: 1}), &full)
		require.NoError(t, d.Warm(t.Context(), vram.Demand{Bytes: size, Count: 0}))
		require.NoError(t, d.Close())
	}
}

// Sizes are read exactly up to the largest, and none wraps around beyond it.
func TestParseBytesAtTheEndOfTheRange(t *testing.T) {
	for text, want := range map[string]int64{
		"4611686018427387903": 1<<62 - 1, "4194303TiB": 4194303 << 40, "4503599627370495K": 1<<62 - 1024,
		"4611686TB": 4611686e12, "4194303.5T": 4194303<<40 + 1<<39, "0": 0, "0MB": 0, "1B": 1,
		"9007199254740993": 1<<53 + 1, "2.0KiB": 2048, "0.5K": 512,
	} {
		got, err := vram.ParseBytes(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"4611686018427387904", "9223372036854775807", "9223372036854775808", "18446744073709551616", "36893488147419103232",
		"4194304TiB", "8388608T", "16777216TiB", "16777217T", "4194304.0T", "8388608.0T", "9000000.5T", "16777216.0TiB", "4611687TB", "9999999TB",
		"4503599627370496K", strings.Repeat("9", 400), strings.Repeat("9", 400) + ".5GB",
	} {
		n, err := vram.ParseBytes(text)
		var bad *vram.ConfigError
		require.ErrorAs(t, err, &bad, text)
		assert.Zero(t, n, text)
		assert.Equal(t, "at most 4611686018427387903 bytes", bad.Want, text)
	}
	for _, text := range []string{"0.5", "1.0", "1.5B", "0.0001K", "0.9999999999b", "0.0"} {
		_, err := vram.ParseBytes(text)
		var bad *vram.ConfigError
		require.ErrorAs(t, err, &bad, text)
		assert.Contains(t, bad.Want, "whole number of bytes", text)
	}
}

// A value with two possible meanings is refused, and the error names the variable and the valid
// values.
func TestVariablesThatCouldMeanTwoThings(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"VRAM_MEMORY_LIMIT", "0.5", "VRAM_MEMORY_FRACTION"},
		{"VRAM_MEMORY_LIMIT", "1.0", "VRAM_MEMORY_FRACTION"},
		{"VRAM_MEMORY_LIMIT", "50%", "VRAM_MEMORY_FRACTION"},
		{"VRAM_MEMORY_LIMIT", "0", "over 0"},
		{"VRAM_MEMORY_LIMIT", "0.0GB", "over 0"},
		{"VRAM_MEMORY_LIMIT", "9999999TB", "a size"},
		{"VRAM_MEMORY_LIMIT", "4611686018427387904", "a size"},
		{"VRAM_SEGMENT_SIZE", "0", "over 0"},
		{"VRAM_CACHE_SIZE", "0MB", "over 0"},
		{"VRAM_CACHE_BLOCKS", "0", "1 or more"},
		{"VRAM_MEMORY_FRACTION", "0", "over 0"},
		{"VRAM_MEMORY_FRACTION", "NaN", "over 0"},
		{"VRAM_MEMORY_FRACTION", "90", "at most 1"},
		{"VRAM_MEMORY_FRACTION", "90%", "at most 1"},
		{"VRAM_DEVICE", "99999999999999999999", "from 0"},
		{"VRAM_DEVICE", "0,1", "from 0"},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			withoutVariables(t)
			t.Setenv(c.name, c.value)
			_, err := vram.ConfigFromEnv(vram.Config{})
			var wrong *vram.EnvError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, c.name, wrong.Name)
			assert.Contains(t, wrong.Want, c.want)
			assert.Contains(t, err.Error(), c.value)
		})
	}
}

// A fraction from the environment is not silenced by a limit of the base.
func TestAFractionFromTheEnvironmentReplacesTheLimitOfTheBase(t *testing.T) {
	withoutVariables(t)
	t.Setenv("VRAM_MEMORY_FRACTION", "0.5")
	c, err := vram.ConfigFromEnv(vram.Config{LimitBytes: gib})
	require.NoError(t, err)
	assert.Zero(t, c.LimitBytes)
	assert.InDelta(t, 0.5, c.MemoryFraction, 0)
}

// The module's name stands once in an error's text, however many layers it has come through.
func TestErrorsNameTheModuleOnce(t *testing.T) {
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{TotalBytes: gib})})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	keep := must(t, s, gib/2)
	warmErr := d.Warm(t.Context(), vram.Demand{Bytes: gib, Count: 1})
	_, reserveErr := d.Reserve(t.Context(), gib*3/4)
	freeAll(t, keep)
	require.NoError(t, d.Close())
	closedErr := d.Warm(t.Context(), vram.Demand{Bytes: gib / 2, Count: 1})
	for _, err := range []error{warmErr, reserveErr, closedErr} {
		require.Error(t, err)
		assert.Equal(t, 1, strings.Count(err.Error(), "vram: "), "%v", err)
	}
	require.ErrorIs(t, closedErr, vram.ErrClosed)
}
