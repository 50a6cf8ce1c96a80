package advice

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/analysis"
)

const gib = 1 << 30

func tried(name string, reservedBytes int64, first, last time.Duration) Trial {
	t := Trial{Name: name, PeakReservedBytes: reservedBytes, FirstDriver: first, LastDriver: last, FirstCalls: uint64(first.Microseconds()), LeastLimitBytes: reservedBytes / 2}
	t.LastCalls = uint64(last.Microseconds())
	return t
}

// Of modes that have settled the one that holds least is chosen, and the default where none is better.
func TestTheModeFollowsFromTheTrials(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		fast, balanced, lean Trial
		want                 string
		gain                 string
	}{
		"lean settles":          {tried("fast", 14*gib, ms, 0), tried("balanced", 13*gib, 2*ms, 0), tried("lean", 12*gib, 99*ms, 0), "lean", "reserves 12.00 GiB instead of 13.00 GiB"},
		"lean keeps moving":     {tried("fast", 14*gib, 2*ms, 0), tried("balanced", 13*gib, 2*ms, 0), tried("lean", 12*gib, 99*ms, 9*ms), "balanced", ""},
		"fast is no larger":     {tried("fast", 13*gib, ms, 0), tried("balanced", 13*gib, 2*ms, 0), tried("lean", 13*gib, 99*ms, 0), "fast", "1ms of driver time in the first round instead of 2ms"},
		"a hair less is none":   {tried("fast", 13*gib, 2*ms, 0), tried("balanced", 13*gib, 2*ms, 0), tried("lean", 13*gib-1, 2*ms, 0), "balanced", ""},
		"none settles":          {tried("fast", 14*gib, ms, ms), tried("balanced", 13*gib, 2*ms, 2*ms), tried("lean", 12*gib, 99*ms, 9*ms), "fast", "1ms in the last round instead of 2ms"},
		"only balanced settles": {tried("fast", 14*gib, ms, ms), tried("balanced", 13*gib, 2*ms, 0), tried("lean", 12*gib, 9*ms, 9*ms), "balanced", ""},
	} {
		t.Run(name, func(t *testing.T) {
			trials := []Trial{c.fast, c.balanced, c.lean}
			chosen, r := footprint(trials)
			assert.Equal(t, c.want, trials[chosen].Name)
			assert.Equal(t, c.want != "balanced", r.Change)
			assert.Equal(t, r.Change, r.Gain != "")
			assert.Contains(t, r.Gain, c.gain)
			assert.Len(t, r.Because, 3)
		})
	}
	failed := tried("lean", gib, ms, 0)
	failed.FailedCount = 1
	chosen, _ := footprint([]Trial{tried("fast", 3*gib, ms, 0), tried("balanced", 2*gib, ms, 0), failed})
	assert.Equal(t, 1, chosen, "what fails is not chosen")
}

// A warm-up is recommended where the first round is faster with it, and then only.
func TestAWarmUpMustHelp(t *testing.T) {
	list := []vram.Demand{{Bytes: 4096, Count: 3}}
	without, with := tried("without", gib, 10*time.Millisecond, 0), tried("with", gib+1, time.Millisecond, 0)
	r := warmUp(&without, &with, list)
	assert.True(t, r.Change)
	assert.Equal(t, "1ms of driver time in the first round instead of 10ms", r.Gain)
	assert.Contains(t, r.Price, "the mapping")
	assert.Equal(t, "Warm: []vram.Demand{\n\t{Bytes: 4096, Count: 3},\n},", r.Paste)
	with.FirstDriver = 9500 * time.Microsecond
	r = warmUp(&without, &with, list)
	assert.False(t, r.Change)
	assert.Empty(t, r.Gain)
	assert.Empty(t, r.Paste)
	with.FirstDriver, with.FailedCount = 0, 1
	assert.False(t, warmUp(&without, &with, list).Change, "not at the price of an allocation")
}

// A limit is a gain where less is reserved under it, and is none where allocations fail.
func TestALimitMustHold(t *testing.T) {
	without := tried("without", 4*gib, time.Millisecond, 0)
	assert.Equal(t, int64(2*gib+64<<20), (enough(&without)+63<<20)>>26<<26, "three percent over the least limit")
	with := tried("with", 3*gib, 2*time.Millisecond, time.Millisecond)
	r := limit(&without, &with, 3*gib)
	assert.True(t, r.Change)
	assert.Equal(t, "reserves 3.00 GiB instead of 4.00 GiB", r.Gain)
	assert.Equal(t, "2ms of driver time in the first round instead of 1ms; 1ms in the last round instead of 0s", r.Price)
	assert.Equal(t, "LimitBytes: 3221225472,", r.Paste)

	with.PeakReservedBytes = without.PeakReservedBytes
	assert.False(t, limit(&without, &with, 4*gib).Change)
	with.FailedCount = 1
	r = limit(&without, &with, gib)
	assert.False(t, r.Change)
	assert.Contains(t, r.Advice, "no limit")

	without.LeastLimitBytes = without.PeakReservedBytes
	assert.Equal(t, without.PeakReservedBytes, enough(&without), "no more than is reserved without a limit")
}

// Of the bounds of caches the one that lowers most is taken, if driver calls stay as they are.
func TestACacheBoundMustHelp(t *testing.T) {
	without := tried("none", 4*gib, time.Millisecond, 0)
	bounds := []int64{1 << 20, 2 << 20, 3 << 20}
	calls := tried("calls", gib, time.Millisecond, time.Millisecond)
	r := cacheBound(&without, []Trial{calls, tried("b", 3*gib, time.Millisecond, 0), tried("c", 2*gib, time.Millisecond, 0)}, bounds)
	assert.True(t, r.Change)
	assert.Equal(t, "StreamCacheBytes: 3145728,", r.Paste)
	r = cacheBound(&without, []Trial{calls, without, without}, bounds)
	assert.False(t, r.Change)
	assert.Empty(t, r.Gain)
	assert.Len(t, r.Because, 4)
}

// A way counts as faster where it is so by a tenth, in the median and in the best lap, and in all laps but one.
func TestARaceMustBeWon(t *testing.T) {
	laps := func(plain, lane, batch time.Duration) (all []lap) {
		for range lapCount {
			all = append(all, lap{plain, lane, batch})
		}
		return all
	}
	p := &analysis.Pattern{}
	r := calls(laps(1000, 500, 900), 10, p)
	assert.True(t, r.Change)
	assert.Contains(t, r.Advice, "Lane")
	assert.Equal(t, "0.50 of the time", r.Gain)
	assert.Contains(t, calls(laps(1000, 800, 700), 10, p).Advice, "AllocBatch")
	assert.Contains(t, calls(laps(1000, 950, 1200), 10, p).Advice, "Leave", "by less than a tenth")

	noisy := laps(1000, 500, 2000)
	noisy[0][lanes], noisy[1][lanes] = 3000, 3000
	assert.False(t, calls(noisy, 10, p).Change, "two laps were lost")
	noisy[1][lanes] = 500
	assert.True(t, calls(noisy, 10, p).Change, "one may be")
	noisy[1][plain] = 500
	assert.False(t, calls(noisy, 10, p).Change, "the best laps are the same: plain calls were slowed down")
}

// A list that is pasted is short and holds as many bytes as are live at the peak.
func TestDemandsFitOnAScreen(t *testing.T) {
	var sizes []analysis.Size
	total := int64(0)
	for i := range 40 {
		each := int64(40-i) << 20
		sizes = append(sizes, analysis.Size{EachBytes: each, Share: analysis.Share{Count: 2, Bytes: 2 * each}})
		total += 2 * each
	}
	for _, count := range []int{1, mostDemands - 1, mostDemands, mostDemands + 1, 40} {
		list := demands(sizes[:count])
		require.LessOrEqual(t, len(list), mostDemands)
		want, got := int64(0), int64(0)
		for _, s := range sizes[:count] {
			want += s.Bytes
		}
		for _, d := range list {
			got += d.Bytes * int64(d.Count)
		}
		assert.GreaterOrEqual(t, got, want)
		assert.Less(t, got, want+roomBytes)
	}
	read, err := vram.ParseDemands(Variable(demands(sizes)))
	require.NoError(t, err)
	assert.Equal(t, demands(sizes), read)
	assert.True(t, strings.HasPrefix(Variable(demands(sizes)), "41943040:2,"))
}
