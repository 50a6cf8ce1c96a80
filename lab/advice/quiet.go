package advice

import (
	"fmt"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/lab/analysis"
	"github.com/go-vram/vram/lab/replay"
	"github.com/go-vram/vram/lab/replay/recorder"
)

const (
	// quietShare is the least part of the recording that a quiet stretch lasts. Not less: memory of a pause between two steps
	// is kept on purpose.
	quietShare = 0.5
	// pauseCount pauses of one tick each lie in a quiet stretch when it is played. Not fewer: a stream returns memory after one
	// or two ticks, and the pool releases it after as many.
	pauseCount = 10
	tick       = 100 * time.Millisecond
	// leastRelease and mostRelease bound the advised time. Not less: a shorter time gives the memory of every pause away. Not
	// more: the default releases it by then.
	leastRelease = time.Second
	mostRelease  = 15 * time.Second
	// releaseParts is how many times the advised time a quiet stretch lasts: twice that goes by until memory is released.
	releaseParts = 4
)

// quiet is the longest stretch of events in which at most half of the peak is live, and after which more is.
type quiet struct {
	from, to int     // events
	share    float64 // of the recording's time; of its events where it has no times
	duration time.Duration
	mostLive int64
}

func quietest(micros, live []int64, peakBytes int64) (longest quiet) {
	at := func(event int) float64 { return float64(event) }
	end := float64(len(live))
	if last := micros[len(micros)-1]; last > 0 {
		at = func(event int) float64 { return float64(micros[min(event, len(micros)-1)]) }
		end = float64(last)
	}
	for from := 0; from < len(live); {
		q := quiet{from: from, to: from}
		for ; q.to < len(live) && live[q.to] <= peakBytes/2; q.to++ {
			q.mostLive = max(q.mostLive, live[q.to])
		}
		q.share = (at(q.to) - at(q.from)) / end
		if q.from > 0 && q.to > q.from && q.share > longest.share { // before the first spike nothing is to be released
			longest = q
		}
		from = q.to + 1
	}
	longest.duration = time.Duration(longest.share * float64(micros[len(micros)-1]) * float64(time.Microsecond))
	return longest
}

// stretched is a trial that pauses in the quiet stretch.
type stretched struct {
	Trial
	heldBytes int64 // reserved at the end of the stretch, in the first round
}

// stretch plays two rounds of a configuration, with or without the pauses.
func (b *builder) stretch(s setup, q *quiet, pause bool) (stretched, error) {
	o := s.options()
	o.NewDriver, o.Rounds, o.Config.Stats = simulated, 2, vram.StatsOn
	watched, err := recorder.Attach(b.trace, &o)
	if err != nil {
		return stretched{}, err
	}
	observe := o.Observe
	every := max(1, (q.to-q.from)/pauseCount)
	o.Observe = func(seen replay.Observation) {
		observe(seen)
		if pause && seen.Index > q.from && seen.Index < q.to && (seen.Index-q.from)%every == 0 {
			b.rest()
		}
	}
	r, err := replay.Run(b.ctx, b.trace, o)
	if err != nil {
		return stretched{}, fmt.Errorf("quiet stretch: %w", err)
	}
	return stretched{trial("stretched", &r), watched.Reserved()[q.to-1]}, nil
}

// rest lets a tick go by.
func (b *builder) rest() {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.ctx.Done():
	}
}

// tryQuiet tries the settings that return memory after a spike: ReleaseAfter, and on top of it PoolCacheBytes.
func tryQuiet(b *builder, live []int64) error {
	q := quietest(b.trace.Micros, live, b.scale.peakBytes)
	if b.trial.PeakReservedBytes < leastForLimit || q.share < quietShare {
		why := fmt.Sprintf("the longest stretch with at most half of the peak live is %s of the recording", percent(q.share))
		b.add(Recommendation{Topic: "release", Advice: "Leave ReleaseAfter at its default: no spike is followed by a long stretch of small demand.", Because: []string{why}}, choice{}, nil)
		b.add(Recommendation{Topic: "pool cache", Advice: "Leave PoolCacheBytes at 0: the pool's free memory is used again.", Because: []string{why}}, choice{}, nil)
		return nil
	}
	without, err := b.stretch(b.set, &q, false)
	if err != nil {
		return err
	}
	s := b.set
	s.config.ReleaseAfter = tick
	with, err := b.stretch(s, &q, true)
	if err != nil {
		return err
	}
	after := (q.duration / releaseParts).Round(time.Second)
	after = min(max(after, leastRelease), mostRelease)
	b.separate(release(b.scale, &q, &without, &with, after), func(s *setup) { s.config.ReleaseAfter = after }, "ReleaseAfter "+after.String())
	cacheBytes := whole(q.mostLive)
	s.config.PoolCacheBytes = cacheBytes
	bounded, err := b.stretch(s, &q, true)
	if err != nil {
		return err
	}
	b.separate(poolCache(b.scale, &q, &with, &bounded, cacheBytes), func(s *setup) { s.config.PoolCacheBytes = cacheBytes }, "PoolCacheBytes "+units.Bytes(cacheBytes))
	return nil
}

// quietEffect returns the gain of a change in the quiet stretch, and the cost of allocating the memory again.
func (s scale) quietEffect(q *quiet, was, is *stretched) effect {
	if is.FailedCount > was.FailedCount {
		return effect{memory: -1, each: -1}
	}
	return effect{memory: q.share * s.memory(was.heldBytes-is.heldBytes), each: s.time(was.LastDriver - is.LastDriver)}
}

// quietDifferences returns the figures of both.
func (s scale) quietDifferences(q *quiet, was, is *stretched) (gain, price string) {
	if is.heldBytes < was.heldBytes {
		gain = fmt.Sprintf("holds %s instead of %s at the end of the stretch (%s of the peak, in %s of the recording)", precise(is.heldBytes), precise(was.heldBytes),
			percent(s.memory(was.heldBytes-is.heldBytes)), percent(q.share))
	}
	if rounded(is.LastDriver) > rounded(was.LastDriver) {
		price = fmt.Sprintf("%v of driver time for each spike instead of %v", rounded(is.LastDriver), rounded(was.LastDriver))
		if s.duration > 0 {
			price += fmt.Sprintf(" (%s of the time)", percent(s.time(was.LastDriver-is.LastDriver)))
		}
	}
	return gain, price
}

func (q *quiet) text() string {
	text := fmt.Sprintf("at most %s live in %s of the recording, from event %d to %d", units.Bytes(q.mostLive), percent(q.share), q.from, q.to)
	if q.duration > 0 {
		text += fmt.Sprintf(", %v", q.duration.Round(time.Microsecond))
	}
	return text
}

// release compares memory that is released in a quiet stretch to memory that is kept.
func release(s scale, q *quiet, without, with *stretched, after time.Duration) Recommendation {
	r := Recommendation{Topic: "release", Because: []string{
		q.text(),
		fmt.Sprintf("at its end, without a release: %s reserved; %s", units.Bytes(without.heldBytes), without.driverText()),
		fmt.Sprintf("at its end, played so slowly that memory is released: %s reserved; %s", units.Bytes(with.heldBytes), with.driverText()),
	}}
	r.Gain, r.Price = s.quietDifferences(q, without, with)
	switch {
	case !s.quietEffect(q, without, with).pays():
		r.Advice = "Leave ReleaseAfter at its default: the released memory is not worth its cost."
	case after >= mostRelease:
		r.Advice = "Leave ReleaseAfter at its default: the stretch is long enough for it."
	default:
		r.Change = true
		r.Advice = fmt.Sprintf("Set ReleaseAfter to %v if demand stays small for longer than %v, or call Device.Trim after the spike.", after, 2*after)
		r.Paste = fmt.Sprintf("ReleaseAfter: %d * time.Second,", int64(after/time.Second))
	}
	return r
}

// poolCache compares a bound of the pool's free memory to none, where memory is released.
func poolCache(s scale, q *quiet, without, with *stretched, cacheBytes int64) Recommendation {
	r := Recommendation{Topic: "pool cache", Because: []string{
		fmt.Sprintf("without a bound: %s reserved at the end of the stretch; %s", units.Bytes(without.heldBytes), without.driverText()),
		fmt.Sprintf("with %s: %s reserved; %s", units.Bytes(cacheBytes), units.Bytes(with.heldBytes), with.driverText()),
	}}
	r.Gain, r.Price = s.quietDifferences(q, without, with)
	if !s.quietEffect(q, without, with).pays() {
		r.Advice = "Leave PoolCacheBytes at 0: with ReleaseAfter a bound is not worth its cost."
		return r
	}
	r.Change = true
	r.Advice = fmt.Sprintf("Set PoolCacheBytes to %s, with ReleaseAfter.", units.Bytes(cacheBytes))
	r.Paste = fmt.Sprintf("PoolCacheBytes: %d,", cacheBytes)
	return r
}

// tryRest tries the changes that the trials of the whole do not show.
func tryRest(b *builder, p *analysis.Pattern, live []int64) error {
	if err := tryWaits(b, p); err != nil {
		return err
	}
	if err := tryQuiet(b, live); err != nil {
		return err
	}
	return tryWays(b, p)
}
