package advice

import (
	"errors"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/lab/analysis"
)

const (
	// mostDemands is the length of a warm-up list. Not longer: it is read and pasted.
	mostDemands = 12
	// roomBytes is the size of a list's last demand, which stands for all smaller ones: a page.
	roomBytes = 2 << 20
	// headroomShare is the part of a limit above the least one. Not less: a program's steps are not all like the recorded ones,
	// and a limit that is close to the least makes the pool move memory all the time.
	headroomShare = 0.03
)

// demands returns the buffers that are live at the peak, as a list that fits on a screen: the sizes with most bytes, and pages
// for the rest.
func demands(sizes []analysis.Size) (list []vram.Demand) {
	restBytes := int64(0)
	for i, s := range sizes {
		if i < mostDemands-1 || len(sizes) == mostDemands {
			list = append(list, vram.Demand{Bytes: s.EachBytes, Count: s.Count})
			continue
		}
		restBytes += s.Bytes
	}
	if restBytes > 0 {
		list = append(list, vram.Demand{Bytes: roomBytes, Count: int((restBytes + roomBytes - 1) / roomBytes)})
	}
	return list
}

func tryWarm(b *builder, p *analysis.Pattern) error {
	list := demands(p.Peak.Sizes)
	apply := func(s *setup) { s.demands = list }
	with, err := b.with("warm-up", apply)
	if _, limited := errors.AsType[*vram.LimitError](err); limited || errors.Is(err, vram.ErrOutOfMemory) {
		b.add(Recommendation{Topic: "warm-up", Advice: "Leave Warm empty: the peak does not fit the device at once.", Because: []string{err.Error()}}, choice{}, nil)
		return nil
	}
	if err != nil {
		return err
	}
	b.add(warmUp(b.scale, &b.trial, &with, list), choice{setting: "Warm", apply: apply, keep: effect.starts}, &with)
	return nil
}

func tryCache(b *builder, p *analysis.Pattern) error {
	if len(p.Streams) == 1 {
		b.add(Recommendation{Topic: "stream cache", Advice: "Leave StreamCacheBytes at 0: a single stream's cache takes memory from no other."}, choice{}, nil)
		return nil
	}
	bounds := []int64{32 << 20, 128 << 20, 512 << 20}
	var with []Trial
	for _, bound := range bounds {
		t, err := b.with("cache of "+units.Bytes(bound), func(s *setup) { s.config.StreamCacheBytes = bound })
		if err != nil {
			return err
		}
		with = append(with, t)
	}
	best, r := cacheBound(b.scale, &b.trial, with, bounds)
	if best < 0 {
		b.add(r, choice{}, nil)
		return nil
	}
	apply := func(s *setup) { s.config.StreamCacheBytes = bounds[best] }
	b.add(r, choice{setting: "StreamCacheBytes " + units.Bytes(bounds[best]), apply: apply, keep: effect.pays}, &with[best])
	return nil
}

// whole returns the bytes in whole pages.
func whole(bytes int64) int64 { return (bytes + roomBytes - 1) / roomBytes * roomBytes }

// limits returns the limits to try, the lowest first: the least one of the recorded order with its headroom, and for several
// streams others that leave room for other orders, up to the streams' own peaks at once. None reaches the bytes reserved
// without a limit.
func limits(leastBytes, reservedBytes int64, p *analysis.Pattern) (all []int64) {
	headroom := func(bytes int64) int64 { return whole(bytes + int64(headroomShare*float64(bytes))) }
	all = append(all, headroom(leastBytes))
	ownPeaks := int64(0)
	for _, s := range p.Streams {
		ownPeaks += s.PeakLiveBytes
	}
	if most := headroom(ownPeaks); len(p.Streams) > 1 && most > all[0] {
		all = append(all, whole((all[0]+most)/2), most)
	}
	for i, limitBytes := range all {
		if i > 0 && limitBytes >= reservedBytes {
			return all[:i]
		}
	}
	return all
}

// parallelRuns is how many orders of goroutines a limit is tried in. Not fewer: they differ from run to run.
const parallelRuns = 3

func tryLimit(b *builder, p *analysis.Pattern, leastBytes int64) error {
	if leastBytes == 0 {
		b.add(Recommendation{Topic: limitTopic, Advice: "Leave LimitBytes at 0: so little is live that a few pages decide."}, choice{}, nil)
		return nil
	}
	var tried []limitTrial
	for _, limitBytes := range limits(leastBytes, b.trial.PeakReservedBytes, p) {
		t := limitTrial{limitBytes: limitBytes}
		s := b.set
		s.limitBytes = limitBytes
		var err error
		if t.trial, err = b.play("limit", &s); err != nil {
			return err
		}
		if t.failedCount, err = b.parallel(&s); err != nil {
			return err
		}
		tried = append(tried, t)
		if t.trial.FailedCount == 0 && t.failedCount <= 0 {
			break
		}
	}
	chosen, r := limit(b.scale, &b.trial, leastBytes, tried)
	if chosen < 0 {
		b.add(r, choice{}, nil)
		return nil
	}
	limitBytes := tried[chosen].limitBytes
	apply := func(s *setup) { s.limitBytes = limitBytes }
	b.add(r, choice{setting: "LimitBytes " + units.Bytes(limitBytes), apply: apply, keep: effect.pays}, &tried[chosen].trial)
	return nil
}

// inParallel returns how many allocations fail with a goroutine for each stream, in the worst of some runs; -1 for one stream.
func (l *lab) inParallel(s *setup) (failedCount int, err error) {
	if l.trace.Info.StreamCount == 1 {
		return -1, nil
	}
	for seed := range uint64(parallelRuns) {
		o := s.options()
		o.Parallel, o.Seed = true, seed
		t, err := l.try("limit in parallel", o)
		if err != nil {
			return 0, err
		}
		failedCount = max(failedCount, t.FailedCount)
	}
	return failedCount, nil
}

// lag is how long a buffer's last use occupies its stream where waits are tried: a kernel. Not longer: most are shorter.
const lag = time.Millisecond

func tryWaits(b *builder, p *analysis.Pattern) error {
	if len(p.Streams) == 1 {
		b.add(Recommendation{Topic: "waits", Advice: "Leave Waits at never: a single stream has no other to wait for."}, choice{}, nil)
		return nil
	}
	apply := func(s *setup) { s.config.Waits = vram.WaitsAvoidGrowth }
	lagging := func(s setup) (Trial, error) {
		o := s.options()
		o.Lag = lag
		return b.try("waits", o)
	}
	without, err := lagging(b.set)
	if err != nil {
		return err
	}
	s := b.set
	apply(&s)
	with, err := lagging(s)
	if err != nil {
		return err
	}
	b.separate(waits(b.scale, &without, &with), apply, "Waits avoid-growth")
	return nil
}
