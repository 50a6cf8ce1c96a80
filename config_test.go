package vram

import (
	"encoding"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// The defaults of ReleaseAfter are the documented ones; it is rounded up to whole ticks, and a negative one is none.
func TestReleaseAfter(t *testing.T) {
	t.Parallel()
	for f, want := range map[Footprint]time.Duration{Balanced: 15 * time.Second, Lean: 1500 * time.Millisecond, Fast: time.Minute} {
		byDefault, said := &Config{Footprint: f}, &Config{Footprint: f, ReleaseAfter: want}
		assert.Equal(t, said.ageTicks(), byDefault.ageTicks(), "%v", f)
		assert.EqualValues(t, want/tickInterval, byDefault.ageTicks(), "%v", f)
	}
	for after, want := range map[time.Duration]uint32{1: 1, tickInterval: 1, tickInterval + 1: 2, -1: 0, -time.Hour: 0} {
		assert.Equal(t, want, (&Config{ReleaseAfter: after}).ageTicks(), "%v", after)
	}
}

// A bound that is all of the device bounds nothing, however it is set: the policy is that of a device without one. One byte
// less is a limit, at which whole free handles must be found.
func TestAllOfTheDeviceIsNoLimit(t *testing.T) {
	t.Parallel()
	d, err := sim.New(sim.Config{TotalBytes: 8 << 30}).Open(0)
	require.NoError(t, err)
	info := d.Info()
	for _, f := range []Footprint{Balanced, Lean, Fast} {
		free := (&Config{Footprint: f}).settings(info)
		assert.Equal(t, info.TotalBytes, free.LimitBytes)
		assert.Equal(t, free, (&Config{Footprint: f, MemoryFraction: 1}).settings(info))
		assert.Equal(t, free, (&Config{Footprint: f, LimitBytes: info.TotalBytes}).settings(info))
		for _, c := range []Config{{LimitBytes: info.TotalBytes - 1}, {MemoryFraction: 0.999}} {
			c.Footprint = f
			limited := c.settings(info)
			assert.Less(t, limited.LimitBytes, info.TotalBytes)
			assert.EqualValues(t, 1, limited.Policy.HandlePages)
		}
	}
	require.NoError(t, d.Close())
}

// Each letter that is missing, too many or another is one, and two neighbours that changed places are one.
func TestLettersOfAMisspelledWord(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"STATS", "STATS"}: 0, {"STATS", ""}: 5, {"", "STATS"}: 5, {"STAT", "STATS"}: 1, {"STATS", "TATS"}: 1,
		{"STATS", "STETS"}: 1, {"STATS", "TSATS"}: 1, {"STATS", "STAST"}: 1, {"STATS", "TSAST"}: 2, {"STATS", "STEPS"}: 2, {"AB", "BA"}: 1,
		{"WARMUP", "WAMRPU"}: 2, {"ABC", "CAB"}: 2,
	} {
		assert.Equal(t, want, misspelled(pair[0], pair[1]), "%q", pair)
		assert.Equal(t, want, misspelled(pair[1], pair[0]), "%q", pair)
	}
}

// text is a value with a name.
type text interface {
	encoding.TextMarshaler
	encoding.TextUnmarshaler
}

// Each value with a name is read from its text, and another text is an error that changes nothing.
func TestNamesAreRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		all  []encoding.TextMarshaler
		read text
	}{
		"Footprint":   {[]encoding.TextMarshaler{Balanced, Lean, Fast}, new(Footprint)},
		"Waits":       {[]encoding.TextMarshaler{WaitsNever, WaitsAvoidGrowth, WaitsAlways}, new(Waits)},
		"StatsLevel":  {[]encoding.TextMarshaler{StatsOn, StatsOff, StatsExact}, new(StatsLevel)},
		"Segments":    {[]encoding.TextMarshaler{SegmentsAuto, SegmentsVMM, SegmentsPlain}, new(Segments)},
		"DeviceState": {[]encoding.TextMarshaler{DeviceNotOpen, DeviceUnused, DeviceInUse, DeviceClosed}, new(DeviceState)},
		"MemoryState": {[]encoding.TextMarshaler{MemoryLive, MemoryFree, MemoryMixed}, new(MemoryState)},
	} {
		for _, x := range test.all {
			want, err := x.MarshalText()
			require.NoError(t, err)
			require.NoError(t, test.read.UnmarshalText(want), name)
			for _, wrong := range []string{"", "none of them", string(want) + "x"} {
				var bad *ConfigError
				require.ErrorAs(t, test.read.UnmarshalText([]byte(wrong)), &bad, name)
				assert.NotEmpty(t, bad.Want)
			}
			got, err := test.read.MarshalText()
			require.NoError(t, err)
			assert.Equal(t, string(want), string(got), name)
		}
	}
}

// Trim returns the driver's error, and what it cannot release stays counted.
func TestTrimWhoseDriverFails(t *testing.T) {
	t.Parallel()
	faults := fault.Wrap(sim.New(sim.Config{}))
	d, err := Open(Config{Driver: faults, Footprint: Lean})
	require.NoError(t, err)
	n, err := d.Trim(t.Context(), 0)
	require.NoError(t, err, "before the first use nothing is held")
	assert.Zero(t, n)
	s, err := d.NewStream()
	require.NoError(t, err)
	b, err := s.Alloc(8 << 20)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	held := d.Stats().ReservedBytes
	require.NoError(t, faults.Add(fault.Rule{Func: "cuMemUnmap", Result: cudadrv.LaunchFailed}))
	n, err = d.Trim(t.Context(), 0)
	require.ErrorIs(t, err, cudadrv.LaunchFailed)
	assert.Zero(t, n)
	assert.Equal(t, held, d.Stats().ReservedBytes)
	faults.Clear()
	n, err = d.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Equal(t, held, n)
	require.NoError(t, d.Close())
	_, err = d.Trim(t.Context(), 0)
	require.ErrorIs(t, err, ErrClosed)
	assert.False(t, errors.Is(err, cudadrv.LaunchFailed))
}
