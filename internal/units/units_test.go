package units_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/units"
)

func TestBytes(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1 MiB", 2 << 20: "2 MiB",
		5 << 29: "2.5 GiB", 140 << 30: "140 GiB", math.MaxInt64: "8 EiB", -1: "-1 B", -3 << 20: "-3 MiB", math.MinInt64: "-8 EiB",
	} {
		assert.Equal(t, want, units.Bytes(bytes))
	}
}

// AtLeast rounds up.
func TestAtLeast(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1024: "1 KiB", 1025: "1.1 KiB", 1<<20 - 1: "1 MiB", 1<<20 + 1: "1.1 MiB", 1500 << 20: "1.5 GiB",
		3 << 30: "3 GiB", math.MaxInt64: "8 EiB", -1: "-1 B",
	} {
		assert.Equal(t, want, units.AtLeast(bytes), "%d", bytes)
	}
}

func TestCount(t *testing.T) {
	assert.Equal(t, "0 devices", units.Count(0, "device"))
	assert.Equal(t, "1 device", units.Count(uint64(1), "device"))
	assert.Equal(t, "2 devices", units.Count(int64(2), "device"))
}

// A change has its sign, and none is no change.
func TestChange(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 1: "+1 B", -1: "-1 B", 2 << 20: "+2 MiB", -2 << 20: "-2 MiB", math.MinInt64: "-8 EiB"} {
		assert.Equal(t, want, units.Change(bytes))
	}
}

// A duration has the precision of its size, at and next to each bound.
func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "1ns", 999_999: "999.999µs", time.Millisecond: "1ms", 1_499_999: "1ms", 1_500_000: "2ms", -1500 * time.Millisecond: "-1.5s",
		time.Second - 1: "1s", time.Second: "1s", 1049 * time.Millisecond: "1s", 1051 * time.Millisecond: "1.1s",
		time.Minute - 1: "1m0s", time.Minute: "1m0s", time.Minute + 499*time.Millisecond: "1m0s", time.Minute + 501*time.Millisecond: "1m1s",
		90*time.Minute + 250*time.Millisecond: "1h30m0s",
	} {
		assert.Equal(t, want, units.Duration(d), "%d", d)
	}
}
