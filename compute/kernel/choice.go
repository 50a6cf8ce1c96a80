package kernel

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
)

// choices are the schedules that a kernel takes for its kinds of work.
type choices struct {
	program *plan.Program
	tuner   *tuner
	all     atomic.Pointer[map[class]*choice] // replaced, never changed
}

// class is a kind of work of a kernel.
type class struct {
	kind       plan.Kind
	rows, cols uint8 // size classes
}

func classOf(g *plan.Geometry) class {
	return class{g.Kind(), uint8(tune.SizeClass(g.Rows)), uint8(tune.SizeClass(g.Cols))} //nolint:gosec // at most 64
}

// choice is the known schedules of a class. Only the state changes.
type choice struct {
	schedules []plan.Schedule // better than the rule's, the best first
	state     atomic.Uint32
}

// The states of a choice.
const (
	settled   uint32 = iota // nothing is to be measured
	open                    // the next Run measures
	measuring               // one does
)

// maxClasses is how many choices a kernel keeps. Other kinds of work take the rule's.
const maxClasses = 256

// choose applies the best known schedule to a geometry, and reports whether its kind of work is to be measured.
func (s *choices) choose(g *plan.Geometry) (untuned bool) {
	if g.Empty() {
		return false
	}
	at := classOf(g)
	c := (*s.all.Load())[at]
	if c == nil {
		c = s.look(at, g)
	}
	for _, s := range c.schedules {
		if g.Allows(s) {
			g.Apply(s)
			break
		}
	}
	return c.state.Load() == open
}

// look makes the choice of a new class from the tables.
func (s *choices) look(at class, g *plan.Geometry) *choice {
	t := s.tuner
	c := &choice{}
	rows, known := t.rows(s.key(at))
	if known {
		c.schedules, known = s.schedules(g, rows)
	}
	if !known && t.measures() {
		c.state.Store(open)
	}
	for {
		old := s.all.Load()
		if first := (*old)[at]; first != nil {
			return first
		}
		if len(*old) >= maxClasses {
			c.state.Store(settled)
			return c
		}
		if s.all.CompareAndSwap(old, extended(old, at, c)) {
			if len(c.schedules) > 0 {
				s.tuner.counts.tabled.Add(1)
			}
			return c
		}
	}
}

func extended(old *map[class]*choice, at class, c *choice) *map[class]*choice {
	next := maps.Clone(*old)
	next[at] = c
	return &next
}

// settle makes the choice of a class from the rows of a measurement.
func (s *choices) settle(at class, g *plan.Geometry, rows []tune.Row) {
	c := &choice{}
	c.schedules, _ = s.schedules(g, rows)
	for {
		old := s.all.Load()
		if s.all.CompareAndSwap(old, extended(old, at, c)) {
			break
		}
	}
}

// schedules returns the schedules of ranked rows that belong to the present code: the best one and, if that does not fit all
// sizes of the class, the best one that does. known is false if rows are better than the rule's, but all of other code.
func (s *choices) schedules(g *plan.Geometry, rows []tune.Row) (best []plan.Schedule, known bool) {
	byName := map[string]plan.Schedule{}
	all := s.program.Schedules(g)
	for _, schedule := range all {
		byName[schedule.String()] = schedule
	}
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Reference = rows[i].Variant == all[0].String() // the rule may have changed since the measurement
	}
	ranked := tune.Rank(rows)
	for _, r := range ranked {
		schedule, ok := byName[r.Variant]
		if !ok || s.code(*g, schedule) != r.Code {
			s.tuner.counts.stale.Add(1)
			continue
		}
		best = append(best, schedule)
		if schedule.Blocks == 0 {
			break
		}
	}
	return best, len(best) > 0 || len(ranked) == 0
}

// code returns the hash of the text of a geometry with a schedule.
func (s *choices) code(g plan.Geometry, with plan.Schedule) string {
	g.Apply(with)
	return codeHash(s.program, g.Variant)
}

// key returns the key of a class in tables.
func (s *choices) key(at class) tune.Key {
	return tune.Key{Kernel: s.program.String(), Layouts: s.program.Describe(at.kind), Rows: int(at.rows), Cols: int(at.cols)}
}

// giveUp ends a measurement that was not completed. With retry, as where a capture prevented it, a later Run measures.
func (s *choices) giveUp(at class, retry bool) {
	c := (*s.all.Load())[at]
	if c == nil {
		return
	}
	next := settled
	if retry {
		next = open
	}
	c.state.CompareAndSwap(measuring, next)
}
