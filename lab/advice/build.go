package advice

import (
	"fmt"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/lab/replay"
)

// setup is a configuration with a warm-up and a limit.
type setup struct {
	config     vram.Config
	demands    []vram.Demand
	limitBytes int64
}

func (s *setup) options() replay.Options {
	return replay.Options{Config: s.config, Demands: s.demands, Limit: replay.Limit{Bytes: s.limitBytes}}
}

// choice is a change that was taken.
type choice struct {
	recommendation int // its index
	setting        string
	apply          func(*setup)
	keep           func(effect) bool // whether it is worth its price
}

// builder makes one configuration out of the changes: each is tried on top of those that were taken before.
type builder struct {
	*lab
	play func(name string, s *setup) (Trial, error) // try, of a setup
	// parallel is how many allocations fail with a goroutine for each stream, in the worst of some runs; -1 for one stream.
	parallel func(s *setup) (failedCount int, err error)

	scale scale
	set   setup
	trial Trial // of set
	taken []choice
	// others are changes whose effect needs kernels or pauses, which the trials of the whole have not.
	others []string
	all    []Recommendation
}

// separate lists a recommendation that was tried in another way than the configuration is: the trial of the whole does not judge
// it.
func (b *builder) separate(r Recommendation, apply func(*setup), setting string) {
	r.OnTopOf = b.settings()
	if r.Change {
		apply(&b.set)
		b.others = append(b.others, setting)
	}
	b.all = append(b.all, r)
}

// settings returns the names of the accepted changes.
func (b *builder) settings() (names []string) {
	for i := range b.taken {
		names = append(names, b.taken[i].setting)
	}
	return append(names, b.others...)
}

// add lists a recommendation. One to change something becomes part of the configuration, whose trial is given.
func (b *builder) add(r Recommendation, c choice, t *Trial) {
	r.OnTopOf = b.settings()
	if r.Change {
		c.recommendation = len(b.all)
		b.taken = append(b.taken, c)
		c.apply(&b.set)
		b.trial = *t
	}
	b.all = append(b.all, r)
}

// with tries the configuration with a change.
func (b *builder) with(name string, apply func(*setup)) (Trial, error) {
	s := b.set
	apply(&s)
	return b.play(name, &s)
}

// settle tries the whole without each of its parts, and drops a part that is not worth its price there, until none is. A limit
// that was tried on top of a dropped part must hold without it.
func (b *builder) settle(untouched *Trial) error {
	count := len(b.taken)
	if err := b.thin(untouched); err != nil || len(b.taken) == count || b.set.limitBytes == 0 {
		return err
	}
	failedCount, err := b.parallel(&b.set)
	if err != nil || failedCount <= 0 {
		return err
	}
	for i := range b.taken {
		if r := &b.all[b.taken[i].recommendation]; r.Topic == limitTopic {
			without, err := b.without(i)
			if err != nil {
				return err
			}
			b.drop(i, &without)
			r.Advice = fmt.Sprintf("Leave LimitBytes at 0: %s failed in parallel without a change that was dropped.", units.Count(failedCount, "allocation"))
			return b.thin(untouched)
		}
	}
	return nil
}

// thin drops parts until each is worth its price.
func (b *builder) thin(untouched *Trial) error {
	for len(b.taken) > 1 {
		dropped := -1
		var withouts []Trial
		for i := range b.taken {
			t, err := b.without(i)
			if err != nil {
				return err
			}
			withouts = append(withouts, t)
			if dropped < 0 && !b.taken[i].keep(b.scale.effect(&t, &b.trial)) {
				dropped = i
			}
		}
		if dropped < 0 {
			b.refigure(withouts)
			return nil
		}
		b.drop(dropped, &withouts[dropped])
	}
	if len(b.taken) == 1 { // its base may have been dropped
		b.refigure([]Trial{*untouched})
	}
	return nil
}

// without tries the whole without one part.
func (b *builder) without(part int) (Trial, error) {
	s := setup{}
	for i := range b.taken {
		if i != part {
			b.taken[i].apply(&s)
		}
	}
	return b.play("without "+b.taken[part].setting, &s)
}

// drop takes a part out of the whole, which is the trial without it from then on.
func (b *builder) drop(part int, without *Trial) {
	c := b.taken[part]
	r := &b.all[c.recommendation]
	r.Change, r.Paste = false, ""
	r.Advice = fmt.Sprintf("Leave %s: with the other changes it is not worth its price.", r.Topic)
	r.Gain, r.Price = b.scale.differences(without, &b.trial)
	b.taken = append(b.taken[:part:part], b.taken[part+1:]...)
	r.OnTopOf = b.settings()
	b.set, b.trial = setup{}, *without
	for i := range b.taken {
		b.taken[i].apply(&b.set)
	}
}

// refigure updates the parts' gains and prices to those within the whole.
func (b *builder) refigure(withouts []Trial) {
	for i := range b.taken {
		r := &b.all[b.taken[i].recommendation]
		r.OnTopOf = nil
		for j := range b.taken {
			if j != i {
				r.OnTopOf = append(r.OnTopOf, b.taken[j].setting)
			}
		}
		r.Gain, r.Price = b.scale.differences(&withouts[i], &b.trial)
	}
}
