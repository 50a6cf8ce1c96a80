package advice

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/lab/analysis"
)

const gib = 1 << 30

func tried(name string, reservedBytes int64, first, last time.Duration) Trial {
	t := Trial{Name: name, PeakReservedBytes: reservedBytes, FirstDriver: first, LastDriver: last, FirstCalls: uint64(first.Microseconds()), LeastLimitBytes: reservedBytes / 2}
	t.LastCalls = uint64(last.Microseconds())
	return t
}

// tenGiB is a scale on which a percent is 102 MiB, and 10 ms.
func tenGiB() scale { return scale{peakBytes: 10 * gib, duration: time.Second} }

// A mode is chosen if its gain is worth its price, as shares of the recording, and the default if none is.
func TestTheModeFollowsFromTheTrials(t *testing.T) {
	ms := time.Millisecond
	for name, c := range map[string]struct {
		fast, balanced, lean Trial
		want                 string
		gain                 string
	}{
		"lean settles":        {tried("fast", 14*gib, ms, 0), tried("balanced", 13*gib, 2*ms, 0), tried("lean", 12*gib, 99*ms, 0), "lean", "reserves 12.00 GiB instead of 13.00 GiB (10.0 % of the peak)"},
		"lean keeps moving":   {tried("fast", 14*gib, 2*ms, 0), tried("balanced", 13*gib, 2*ms, 0), tried("lean", 12*gib, 99*ms, 9*ms), "balanced", ""},
		"lean moves little":   {tried("fast", 14*gib, 2*ms, 0), tried("balanced", 13*gib, 2*ms, 0), tried("lean", 12*gib, 99*ms, 7*ms), "lean", "reserves 12.00 GiB"},
		"a millisecond once":  {tried("fast", 13*gib, ms, 0), tried("balanced", 13*gib, 2*ms, 0), tried("lean", 13*gib, 99*ms, 0), "balanced", ""},
		"a hair less is none": {tried("fast", 13*gib, 2*ms, 0), tried("balanced", 13*gib, 2*ms, 0), tried("lean", 13*gib-1, 2*ms, 0), "balanced", ""},
		"half a millisecond is not worth 2 GiB": {
			tried("fast", 15*gib, ms, ms/4), tried("balanced", 13*gib, 2*ms, 3*ms/4), tried("lean", 13*gib, 99*ms, 90*ms), "balanced", "",
		},
		"time is worth memory": {tried("fast", 14*gib, ms, ms), tried("balanced", 13*gib, 2*ms, 20*ms), tried("lean", 12*gib, 99*ms, 90*ms), "fast", "1ms in the last round instead of 20ms (1.9 % of the time, in each round)"},
	} {
		t.Run(name, func(t *testing.T) {
			trials := []Trial{c.fast, c.balanced, c.lean}
			chosen, r := footprint(tenGiB(), trials)
			assert.Equal(t, c.want, trials[chosen].Name)
			assert.Equal(t, c.want != "balanced", r.Change)
			assert.Equal(t, r.Change, r.Gain != "")
			assert.Contains(t, r.Gain, c.gain)
			assert.Len(t, r.Because, 3)
		})
	}
	failed := tried("lean", gib, ms, 0)
	failed.FailedCount = 1
	chosen, _ := footprint(tenGiB(), []Trial{tried("fast", 3*gib, ms, 0), tried("balanced", 2*gib, ms, 0), failed})
	assert.Equal(t, 1, chosen, "what fails is not chosen")
}

// Without times in the recording only memory that costs no driver time is a gain.
func TestARecordingWithoutTimes(t *testing.T) {
	s := scale{peakBytes: 10 * gib}
	was, is := tried("was", 12*gib, time.Millisecond, 0), tried("is", 11*gib, time.Millisecond, 0)
	assert.True(t, s.effect(&was, &is).pays())
	is.LastDriver = time.Millisecond
	assert.False(t, s.effect(&was, &is).pays())
	gain, price := s.differences(&was, &is)
	assert.Equal(t, "reserves 11.00 GiB instead of 12.00 GiB (10.0 % of the peak)", gain)
	assert.Equal(t, "1ms in the last round instead of 0s (in each round)", price)
	assert.Contains(t, s.principle(), "has no times")
}

// A warm-up is recommended where the first round is shorter with it by a percent of the recording, and then only.
func TestAWarmUpMustHelp(t *testing.T) {
	list := []vram.Demand{{Bytes: 4096, Count: 3}}
	without, with := tried("without", gib, 21*time.Millisecond, 0), tried("with", gib+1, time.Millisecond, 0)
	r := warmUp(tenGiB(), &without, &with, list)
	assert.True(t, r.Change)
	assert.Equal(t, "1ms of driver time in the first round instead of 21ms (2.0 % of the time, once)", r.Gain)
	assert.Contains(t, r.Advice, "the mapping moves")
	assert.Equal(t, "Warm: []vram.Demand{\n\t{Bytes: 4096, Count: 3},\n},", r.Paste)
	with.FirstDriver = 15 * time.Millisecond
	r = warmUp(tenGiB(), &without, &with, list)
	assert.False(t, r.Change)
	assert.Contains(t, r.Gain, "0.6 % of the time", "a reader sees what was found too little")
	assert.Empty(t, r.Paste)
	with.PeakReservedBytes = gib / 2
	assert.True(t, warmUp(tenGiB(), &without, &with, list).Change, "memory is a gain of a warm-up, too")
	with.FirstDriver, with.PeakReservedBytes = 0, 2*gib
	assert.False(t, warmUp(tenGiB(), &without, &with, list).Change, "not at the price of memory")
	with.PeakReservedBytes, with.FailedCount = gib, 1
	assert.False(t, warmUp(tenGiB(), &without, &with, list).Change, "not at the price of an allocation")
}

// A limit is recommended if its gain is worth its cost, and none if allocations fail in any order.
func TestALimitMustHold(t *testing.T) {
	without := tried("without", 4*gib, time.Millisecond, 0)
	with := limitTrial{limitBytes: 3 * gib, trial: tried("with", 3*gib, 2*time.Millisecond, time.Millisecond)}
	chosen, r := limit(tenGiB(), &without, 2*gib, []limitTrial{with})
	assert.Zero(t, chosen)
	assert.True(t, r.Change)
	assert.Equal(t, "reserves 3.00 GiB instead of 4.00 GiB (10.0 % of the peak)", r.Gain)
	assert.Equal(t, "2ms of driver time in the first round instead of 1ms (0.1 % of the time, once); 1ms in the last round instead of 0s (0.1 % of the time, in each round)", r.Price)
	assert.Equal(t, "LimitBytes: 3221225472,", r.Paste)

	nothing := with
	nothing.trial = tried("with", 4*gib, 233*time.Millisecond, 0)
	_, r = limit(tenGiB(), &without, 2*gib, []limitTrial{nothing})
	assert.False(t, r.Change)
	assert.Empty(t, r.Gain)
	assert.Contains(t, r.Price, "233ms of driver time in the first round instead of 1ms", "the price of what brings nothing is shown")

	short := with
	short.trial.FailedCount = 1
	chosen, r = limit(tenGiB(), &without, 2*gib, []limitTrial{short})
	assert.Equal(t, -1, chosen)
	assert.False(t, r.Change)
	assert.Contains(t, r.Advice, "allocations failed")

	parallel := with
	parallel.failedCount = 3946
	chosen, r = limit(tenGiB(), &without, 2*gib, []limitTrial{parallel})
	assert.Equal(t, -1, chosen, "not in the recorded order alone")
	assert.Contains(t, r.Because[1], "3946 in the worst of 3 replays with a goroutine for each stream")
	chosen, _ = limit(tenGiB(), &without, 2*gib, []limitTrial{parallel, with})
	assert.Equal(t, 1, chosen)
}

// Limits leave the headroom, for other orders of several streams too, and stay below the bytes reserved without one.
func TestWhichLimitsAreTried(t *testing.T) {
	one := &analysis.Pattern{Streams: []analysis.Stream{{PeakLiveBytes: 2 * gib}}}
	assert.Equal(t, []int64{2*gib + 62<<20}, limits(2*gib, 4*gib, one), "three percent over the least limit, in pages")
	two := &analysis.Pattern{Streams: []analysis.Stream{{PeakLiveBytes: 2 * gib}, {PeakLiveBytes: 2 * gib}}}
	all := limits(2*gib, 5*gib, two)
	assert.Len(t, all, 3)
	assert.Equal(t, int64(4*gib+124<<20), all[2])
	assert.Len(t, limits(2*gib, 4*gib, two), 2)
	assert.Len(t, limits(2*gib, gib, two), 1)
}

// Of the bounds of caches the one that brings most is taken.
func TestACacheBoundMustHelp(t *testing.T) {
	without := tried("none", 4*gib, time.Millisecond, 0)
	bounds := []int64{1 << 20, 2 << 20, 3 << 20}
	calls := tried("calls", gib, time.Millisecond, time.Second)
	best, r := cacheBound(tenGiB(), &without, []Trial{calls, tried("b", 3*gib, time.Millisecond, 0), tried("c", 2*gib, time.Millisecond, 0)}, bounds)
	assert.Equal(t, 2, best)
	assert.True(t, r.Change)
	assert.Equal(t, "StreamCacheBytes: 3145728,", r.Paste)
	best, r = cacheBound(tenGiB(), &without, []Trial{calls, without, without}, bounds)
	assert.Equal(t, -1, best)
	assert.False(t, r.Change)
	assert.Empty(t, r.Gain)
	assert.Len(t, r.Because, 4)
}

// Waits are recommended with effects that no replay shows.
func TestWaitsMustHelp(t *testing.T) {
	without, with := tried("never", 4*gib, time.Millisecond, 0), tried("avoid", 3*gib, time.Millisecond, 0)
	r := waits(tenGiB(), &without, &with)
	assert.True(t, r.Change)
	assert.Equal(t, "streams wait for each other on the device, which no replay times", r.Price)
	assert.False(t, waits(tenGiB(), &without, &without).Change)
}

// settled is a whole of fast and a limit, in which the first is not worth its price.
func settled(t *testing.T, failedCount int) (b *builder, limited Trial) {
	t.Helper()
	ms := time.Millisecond
	untouched := tried("balanced", 13*gib, 2*ms, 20*ms)
	fast, limited := tried("fast", 14*gib, ms, 0), tried("limit", 11*gib, ms, 5*ms)
	both := tried("both", 11*gib, 2*ms, 9*ms)
	b = &builder{scale: tenGiB(), trial: untouched}
	b.play = func(_ string, s *setup) (Trial, error) {
		switch isFast := s.config.Footprint == vram.Fast; {
		case isFast && s.limitBytes > 0:
			return both, nil
		case isFast:
			return fast, nil
		case s.limitBytes > 0:
			return limited, nil
		}
		return untouched, nil
	}
	b.parallel = func(*setup) (int, error) { return failedCount, nil }
	b.add(Recommendation{Topic: "footprint", Change: true, Paste: "fast"}, choice{setting: "fast", apply: func(s *setup) { s.config.Footprint = vram.Fast }, keep: effect.pays}, &fast)
	b.add(Recommendation{Topic: limitTopic, Change: true, Paste: "limit"}, choice{setting: "limit", apply: func(s *setup) { s.limitBytes = 11 * gib }, keep: effect.pays}, &both)
	assert.Equal(t, []string{"fast"}, b.all[1].OnTopOf)
	require.NoError(t, b.settle(&untouched))
	assert.Equal(t, vram.Balanced, b.set.config.Footprint)
	return b, limited
}

// The accepted changes are tried as a whole, and a part that is not worth its price there is dropped.
func TestTheWholeIsTried(t *testing.T) {
	b, limited := settled(t, 0)
	assert.Equal(t, []string{"limit"}, b.settings())
	assert.False(t, b.all[0].Change)
	assert.Empty(t, b.all[0].Paste)
	assert.Contains(t, b.all[0].Advice, "Leave footprint")
	assert.Contains(t, b.all[0].Price, "9ms in the last round instead of 5ms")
	assert.True(t, b.all[1].Change)
	assert.Empty(t, b.all[1].OnTopOf, "it stands without what was dropped")
	assert.Contains(t, b.all[1].Gain, "reserves 11.00 GiB instead of 13.00 GiB")
	assert.Equal(t, limited, b.trial)
}

// A limit that held with a dropped part must hold without it in parallel, too.
func TestALimitMustHoldInTheWhole(t *testing.T) {
	b, _ := settled(t, 3)
	assert.Empty(t, b.settings())
	assert.False(t, b.all[1].Change)
	assert.Contains(t, b.all[1].Advice, "3 allocations failed in parallel")
	assert.Zero(t, b.set.limitBytes)
}

// A quiet stretch is the longest time in which little lives.
func TestTheQuietStretch(t *testing.T) {
	micros := []int64{0, 10, 20, 100, 110, 200}
	q := quietest(micros, []int64{1, 9, 2, 9, 3, 1}, 9)
	assert.Equal(t, quiet{from: 4, to: 6, share: 0.45, duration: 90 * time.Microsecond, mostLive: 3}, q)
	q = quietest(micros, []int64{1, 1, 1, 9, 1, 1}, 9)
	assert.Equal(t, 4, q.from, "what comes before the first spike is none")
	q = quietest(make([]int64, 6), []int64{1, 9, 2, 1, 9, 1}, 9)
	assert.Equal(t, 2, q.from)
	assert.InDelta(t, 1.0/3, q.share, 1e-9, "by events where there are no times")
	assert.Zero(t, quietest(micros, []int64{9, 9, 9, 9, 9, 9}, 9).share)
}

// Memory is released after a spike if that is worth the time to allocate it again, and the default time is too long.
func TestAReleaseMustHelp(t *testing.T) {
	q := &quiet{share: 0.9, mostLive: gib}
	kept, released := stretched{tried("kept", 10*gib, 0, 0), 10 * gib}, stretched{tried("released", 10*gib, 0, 20*time.Millisecond), gib}
	r := release(tenGiB(), q, &kept, &released, time.Second)
	assert.True(t, r.Change)
	assert.Equal(t, "holds 1.00 GiB instead of 10.00 GiB at the end of the stretch (90.0 % of the peak, in 90.0 % of the recording)", r.Gain)
	assert.Equal(t, "20ms of driver time for each spike instead of 0s (2.0 % of the time)", r.Price)
	assert.False(t, release(tenGiB(), q, &kept, &released, mostRelease).Change, "the default does it")
	released.LastDriver = 90 * time.Millisecond
	assert.False(t, release(tenGiB(), q, &kept, &released, time.Second).Change)
	assert.True(t, poolCache(tenGiB(), q, &kept, &stretched{kept.Trial, gib}, gib).Change)
	assert.False(t, poolCache(tenGiB(), q, &kept, &kept, gib).Change)
}

// A way counts as faster where it is so by a tenth, in the median and in the best lap, and in all laps but one.
func TestARaceMustBeWon(t *testing.T) {
	laps := func(plain, batch time.Duration) (all []lap) {
		for range lapCount {
			all = append(all, lap{plain, batch})
		}
		return all
	}
	p := &analysis.Pattern{}
	r := calls(laps(1000, 500), 10, p)
	assert.True(t, r.Change)
	assert.Contains(t, r.Advice, "AllocBatch")
	assert.Equal(t, "0.50 of the time", r.Gain)
	assert.Contains(t, calls(laps(1000, 950), 10, p).Advice, "Leave", "by less than a tenth")

	noisy := laps(1000, 500)
	noisy[0][batches], noisy[1][batches] = 3000, 3000
	r = calls(noisy, 10, p)
	assert.False(t, r.Change, "two laps were lost")
	assert.Contains(t, r.Because, fmt.Sprintf("a batch for each run of %d and more: 0.50 of the time of plain calls, faster in 7 of 9 laps", analysis.LeastRun))
	assert.Contains(t, r.Advice, "by a tenth in all laps but one")
	noisy[1][batches] = 500
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
}
