package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/cuda"
)

// TuningMode says when Run measures the variants of a kind of work that no table has.
type TuningMode uint8

// The modes.
const (
	TuneNever TuningMode = iota // Run measures nothing
	TuneNow                     // the first Run of a kind of work measures, and waits
	TuneAside                   // it begins a measurement, and a later Run takes the winner
)

var tuningModeNames = [...]string{"never", "now", "aside"} //nolint:gochecknoglobals // constant table, by number

// String is the name.
func (m TuningMode) String() string {
	if int(m) < len(tuningModeNames) {
		return tuningModeNames[m]
	}
	return fmt.Sprintf("TuningMode(%d)", uint8(m))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (m TuningMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: it reads the text of String. With an error the value stays.
func (m *TuningMode) UnmarshalText(text []byte) error {
	for i, name := range tuningModeNames {
		if string(text) == name {
			*m = TuningMode(i)
			return nil
		}
	}
	return fmt.Errorf("kernel: %q is no TuningMode: want %s", text, strings.Join(tuningModeNames[:], ", "))
}

// Tuning says when variants are measured, and bounds the memory and the time of a measurement. The zero value measures nothing but in Tune.
type Tuning struct {
	Mode TuningMode
	// On has the stream of the measurements, of the compiler's device; it stays open until Close. Nil: the compiler's own, which TuneAside refuses.
	On *cuda.Context
	// MemoryBytes bounds the memory of a measurement. 0: 1 GiB.
	MemoryBytes int64
	// RotateBytes is the size of all copies of the tensors together at least, up to 64 copies: more than the device's cache. 0: 128 MiB.
	RotateBytes int64
	// Limit bounds the time of a measurement, looked at between launches. 0: 5 s.
	Limit time.Duration
	// Rounds is how often each variant is timed. 0: 9.
	Rounds int
}

// WithTuning has Run measure variants, or Tune take more or less. NewCompiler refuses with ErrTuningStream a mode without its stream, with
// ErrForeign a context of another device, and with ErrNotOpen one that is not open.
func WithTuning(t Tuning) Option { return func(c *Compiler) { c.tuner.config = t } }

// WithTables has variants chosen by the rows of these tables, the first that has a kind of work, and not by those of package compute/kernel/tune/tables.
// They do not change any more. Without tables the rule chooses.
func WithTables(all ...*tune.Table) Option {
	return func(c *Compiler) {
		c.tuner.tables = func(on tune.Device, of tune.Key) []tune.Row {
			for _, table := range all {
				if rows := table.Rows(on, of); rows != nil {
					return rows
				}
			}
			return nil
		}
	}
}

// class is a kind of work of a kernel.
type class struct {
	kind       plan.Kind
	rows, cols uint8 // size classes
}

func classOf(g *plan.Geometry) class {
	return class{g.Kind(), uint8(tune.SizeClass(g.Rows)), uint8(tune.SizeClass(g.Cols))} //nolint:gosec // at most 64
}

// choice is the knowledge of a class. It does not change, but for the state.
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

// maxClasses is how many kinds of work a kernel keeps the choice of. Others take the rule's.
const maxClasses = 256

// choose gives a geometry the best schedule that is known, and reports whether its kind of work is to be measured.
func (k *Kernel) choose(g *plan.Geometry) (untuned bool) {
	if g.Empty() {
		return false
	}
	at := classOf(g)
	c := (*k.choices.Load())[at]
	if c == nil {
		c = k.look(at, g)
	}
	for _, s := range c.schedules {
		if g.Allows(s) {
			g.Apply(s)
			break
		}
	}
	return c.state.Load() == open
}

// look asks the tables for a class that the kernel meets first.
func (k *Kernel) look(at class, g *plan.Geometry) *choice {
	t := k.by.tuner
	c := &choice{}
	rows, known := t.rows(k.key(at))
	if known {
		c.schedules, known = k.schedules(g, rows)
	}
	if !known && t.config.Mode != TuneNever && !k.by.prepared.Load() {
		c.state.Store(open)
	}
	for {
		old := k.choices.Load()
		if first := (*old)[at]; first != nil {
			return first
		}
		if len(*old) >= maxClasses {
			c.state.Store(settled)
			return c
		}
		if k.choices.CompareAndSwap(old, with(old, at, c)) {
			if len(c.schedules) > 0 {
				k.by.counts.tabled.Add(1)
			}
			return c
		}
	}
}

func with(old *map[class]*choice, at class, c *choice) *map[class]*choice {
	next := maps.Clone(*old)
	next[at] = c
	return &next
}

// settle makes the rows of a measurement the choice of a class. Geometries that were chosen before are forgotten.
func (k *Kernel) settle(at class, g *plan.Geometry, rows []tune.Row) {
	c := &choice{}
	c.schedules, _ = k.schedules(g, rows)
	for {
		old := k.choices.Load()
		if k.choices.CompareAndSwap(old, with(old, at, c)) {
			break
		}
	}
	k.fitted.Store(&[]*fitted{})
}

// schedules are those of ranked rows, as far as the rows are of the code that there is: the best one, and one that fits all sizes of the class.
// They are not known where rows are better than the rule's, but of other code.
func (k *Kernel) schedules(g *plan.Geometry, rows []tune.Row) (best []plan.Schedule, known bool) {
	byName := map[string]plan.Schedule{}
	all := k.program.Schedules(g)
	for _, s := range all {
		byName[s.String()] = s
	}
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Reference = rows[i].Variant == all[0].String() // the rule may be another one than when it was measured
	}
	ranked := tune.Rank(rows)
	for _, r := range ranked {
		s, ok := byName[r.Variant]
		if !ok || hash(k.text(g, s)) != r.Code {
			k.by.counts.stale.Add(1)
			continue
		}
		best = append(best, s)
		if s.Blocks == 0 {
			break
		}
	}
	return best, len(best) > 0 || len(ranked) == 0
}

// text is that of a geometry with a schedule, as it is hashed.
func (k *Kernel) text(g *plan.Geometry, s plan.Schedule) string {
	tried := *g
	tried.Apply(s)
	return k.program.Code(tried.Variant)
}

// hash names a text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// key is the one of a class in tables.
func (k *Kernel) key(at class) tune.Key {
	return tune.Key{Kernel: k.program.String(), Layouts: k.program.Describe(at.kind), Rows: int(at.rows), Cols: int(at.cols)}
}

// tuneFirst measures the kind of work of a Run, or begins to, unless another Run does or a stream is captured.
func (k *Kernel) tuneFirst(c *cuda.Context, f *frame) error {
	t := k.by.tuner
	w := workOf(k, f)
	choice := (*k.choices.Load())[w.class]
	if choice == nil || !choice.state.CompareAndSwap(open, measuring) {
		return nil
	}
	if cuda.Capturing(c) || cuda.Capturing(t.on()) {
		choice.state.Store(open)
		k.by.counts.awaited.Add(1)
		return nil
	}
	if t.config.Mode == TuneAside {
		t.begin(context.Background(), w)
		return nil
	}
	if err := t.now(c, w); err != nil {
		return err
	}
	return k.fit(f)
}
