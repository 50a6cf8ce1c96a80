package acceptance_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel/store"
	"github.com/go-vram/vram/cuda/cublaslt"
)

// withoutVariables empties those that the test was started with.
func withoutVariables(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "VRAM_") {
			t.Setenv(name, "")
		}
	}
}

// The environment is put over the base, field by field.
func TestConfigFromEnvReadsEveryVariable(t *testing.T) {
	for name, value := range map[string]string{
		"VRAM_DRIVER": "sim", "VRAM_DEVICE": "2", "VRAM_SEGMENT_SIZE": "64MiB", "VRAM_CACHE_SIZE": "2GB",
		"VRAM_CACHE_BLOCKS": "100", "VRAM_MEMORY_FRACTION": "0.5", "VRAM_MEMORY_LIMIT": "12GiB",
		"VRAM_WARMUP": "4KiB:50, 64KiB:20", "VRAM_FOOTPRINT": "lean",
		"VRAM_STATS": "exact", "VRAM_DEBUG": "true", "VRAM_WAITS": "always", "VRAM_RELEASE_AFTER": "90s",
	} {
		t.Setenv(name, value)
	}
	c, err := vram.ConfigFromEnv(vram.Config{Tuning: vram.Tuning{PoolCacheBlocks: 7}})
	require.NoError(t, err)
	require.NotNil(t, c.Driver)
	assert.Equal(t, "sim", c.Driver.Name())
	c.Driver = nil
	assert.Equal(t, vram.Config{
		Ordinal: 2, StreamCacheBytes: 2e9, ReleaseAfter: 90 * time.Second, MemoryFraction: 0.5,
		LimitBytes: 12 << 30, Warm: []vram.Demand{{Bytes: 4096, Count: 50}, {Bytes: 65536, Count: 20}},
		Footprint: vram.Lean, Tuning: vram.Tuning{SegmentBytes: 64 << 20, StreamCacheBlocks: 100, PoolCacheBlocks: 7}, Stats: vram.StatsExact, Debug: true, Waits: vram.WaitsAlways,
	}, c)
}

// An error names the variable, its value and the valid ones, and the base stays as it was.
func TestConfigFromEnvNamesWhatIsWrong(t *testing.T) {
	for name, value := range map[string]string{
		"VRAM_DRIVER": "tpu", "VRAM_DEVICE": "-1", "VRAM_SEGMENT_SIZE": "big", "VRAM_CACHE_SIZE": "-5MB",
		"VRAM_CACHE_BLOCKS": "1.5", "VRAM_MEMORY_FRACTION": "1.5", "VRAM_MEMORY_LIMIT": "12 parsecs",
		"VRAM_WARMUP": "4KiB", "VRAM_FOOTPRINT": "small",
		"VRAM_STATS": "some", "VRAM_DEBUG": "maybe", "VRAM_WAITS": "often", "VRAM_RELEASE_AFTER": "later",
	} {
		t.Run(name, func(t *testing.T) {
			withoutVariables(t)
			t.Setenv(name, value)
			c, err := vram.ConfigFromEnv(vram.Config{Ordinal: 3})
			var wrong *vram.EnvError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, name, wrong.Name)
			assert.Contains(t, err.Error(), value)
			assert.NotEmpty(t, wrong.Want)
			assert.Equal(t, vram.Config{Ordinal: 3}, c)
		})
	}
}

// A variable that is not set, or empty, changes nothing.
func TestConfigFromEnvWithoutVariables(t *testing.T) {
	withoutVariables(t)
	t.Setenv("VRAM_DEVICE", " ")
	c, err := vram.ConfigFromEnv(vram.Config{Ordinal: 1})
	require.NoError(t, err)
	assert.Equal(t, vram.Config{Ordinal: 1}, c)
}

// A name that is misspelled is refused, with the one that is meant.
func TestConfigFromEnvNamesTheVariableThatIsMeant(t *testing.T) {
	for name, meant := range map[string]string{
		"VRAM_FOOTPRNT": "VRAM_FOOTPRINT", "VRAM_FOOTPIRNT": "VRAM_FOOTPRINT", "VRAM_LIMIT": "VRAM_MEMORY_LIMIT", "VRAM_MEM_LIMIT": "VRAM_MEMORY_LIMIT",
		"VRAM_MEMORY_LIMITS": "VRAM_MEMORY_LIMIT", "VRAM_CACHESIZE": "VRAM_CACHE_SIZE", "VRAM_WARM_UP": "VRAM_WARMUP", "VRAM_RELEASE": "VRAM_RELEASE_AFTER",
		"VRAM_STAT": "VRAM_STATS", "vram_debug": "VRAM_DEBUG", "VRAM_DEVICES": "VRAM_DEVICE", "VRAM_KERNELS_STORE": "VRAM_KERNEL_STORE", "VRAM_CUBLAS": "VRAM_CUBLASLT", "VRAM_NVRT": "VRAM_NVRTC",
	} {
		t.Run(name, func(t *testing.T) {
			withoutVariables(t)
			t.Setenv(name, "1")
			c, err := vram.ConfigFromEnv(vram.Config{Ordinal: 3})
			var wrong *vram.EnvError
			require.ErrorAs(t, err, &wrong)
			require.ErrorIs(t, err, vram.ErrUnknownVariable)
			assert.Equal(t, meant, wrong.Want)
			assert.EqualError(t, err, "vram: there is no variable "+name+", want "+meant)
			assert.Equal(t, vram.Config{Ordinal: 3}, c)
		})
	}
}

// Variables of other packages are known, and those that resemble none may be another program's: the logger is warned.
func TestConfigFromEnvWarnsOfUnknownVariables(t *testing.T) {
	withoutVariables(t)
	t.Setenv(store.Variable, "off")
	t.Setenv(cublaslt.Variable, "off")
	t.Setenv("VRAM_WARUMP", "")
	for _, name := range []string{"VRAM_STEPS", "VRAM_BATCH_SIZE", "VRAM_PORT_80_TCP", "VRAM_SERVICE_HOST", "VRAM_SEED", "VRAM_", "VRAMP_DEVICE"} {
		t.Setenv(name, "1")
	}
	var log strings.Builder
	_, err := vram.ConfigFromEnv(vram.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	assert.Equal(t, 6, strings.Count(log.String(), "level=WARN"), log.String())
	for _, name := range []string{"name=VRAM_ ", "VRAM_STEPS", "VRAM_BATCH_SIZE", "VRAM_PORT_80_TCP", "VRAM_SERVICE_HOST", "VRAM_SEED"} {
		assert.Contains(t, log.String(), name)
	}
	_, err = vram.ConfigFromEnv(vram.Config{Logger: (*slog.Logger)(nil)})
	require.NoError(t, err)
}

// A base that cannot be is no variable's fault.
func TestConfigFromEnvOverAWrongBase(t *testing.T) {
	withoutVariables(t)
	t.Setenv("VRAM_DEVICE", "1")
	_, err := vram.ConfigFromEnv(vram.Config{PoolCacheBytes: -7})
	var wrong *vram.ConfigError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "PoolCacheBytes", wrong.Field)
}

// Of several variables a wrong one leaves the base whole.
func TestConfigFromEnvIsAllOrNothing(t *testing.T) {
	withoutVariables(t)
	t.Setenv("VRAM_DEVICE", "2")
	t.Setenv("VRAM_STATS", "loud")
	c, err := vram.ConfigFromEnv(vram.Config{Ordinal: 1})
	require.ErrorContains(t, err, "VRAM_STATS")
	assert.Equal(t, 1, c.Ordinal)
}

// A time to release memory after is over zero, or the word never: zero would mean the mode's default.
func TestReleaseAfterOfTheEnvironment(t *testing.T) {
	for value, want := range map[string]time.Duration{"never": -1, " 30s ": 30 * time.Second, "1h30m": 90 * time.Minute} {
		withoutVariables(t)
		t.Setenv("VRAM_RELEASE_AFTER", value)
		c, err := vram.ConfigFromEnv(vram.Config{ReleaseAfter: time.Second})
		require.NoError(t, err, value)
		assert.Equal(t, want, c.ReleaseAfter, value)
	}
	for _, value := range []string{"0", "0s", "-1", "-5s", "30", "Never", "soon"} {
		t.Setenv("VRAM_RELEASE_AFTER", value)
		_, err := vram.ConfigFromEnv(vram.Config{})
		require.EqualError(t, err, `vram: VRAM_RELEASE_AFTER is "`+value+`", want a time as "30s", or "never"`)
	}
}

// A demand is a size of a byte or more and a count of 0 or more. One that is wrong leaves none.
func TestDemandsThatAreRead(t *testing.T) {
	all, err := vram.ParseDemands(" 1:0, 64KiB : 20 ,2MiB:1")
	require.NoError(t, err)
	assert.Equal(t, []vram.Demand{{Bytes: 1}, {Bytes: 64 << 10, Count: 20}, {Bytes: 2 << 20, Count: 1}}, all)
	for _, text := range []string{"", "4", ":", "4:", ":4", "0:1", "-1:1", "4:-1", "x:1", "4:x", "4:1.5", "4:99999999999999999999", "4:1,", "4:1:1", "1:1,x:1"} {
		all, err := vram.ParseDemands(text)
		var refused *vram.ConfigError
		require.ErrorAs(t, err, &refused, text)
		assert.Empty(t, all, text)
	}
}
