package kernel

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// work is a kind of work of a kernel, with the layouts of one Run. It holds no tensors.
type work struct {
	program  *plan.Program
	name     fmt.Stringer
	key      tune.Key
	geometry plan.Geometry // with the schedule of the rule
	count    int
	layouts  [plan.MaxOperands]layout.Layout
	lows     [plan.MaxOperands]uint64 // addresses modulo vectorBytes

	compile func(plan.Variant) futures.Future[*variant]
	settle  func([]tune.Row) // makes Run take the winner
	giveUp  func(retry bool) // ends a measurement without rows
}

// candidate is a variant in a trial.
type candidate struct {
	geometry plan.Geometry
	schedule plan.Schedule
	ready    ready // once it is compiled
}

// trial is one measurement.
type trial struct {
	*bench

	limit   time.Duration
	begin   time.Time
	stopped func() error // an error once the compiler is closed
	all     []*candidate // the first one is the reference
	rows    []tune.Row
	clock   func(plan.Schedule) time.Duration
}

// trial compiles, verifies and times the variants.
func (t *tuner) trial(ctx context.Context, stopped func() error, w *work) (rows []tune.Row, err error) {
	if cuda.Capturing(t.on()) {
		return nil, cuda.ErrCapturing
	}
	m := &trial{limit: t.config.Limit, begin: time.Now(), clock: t.clock, stopped: stopped}
	if m.bench, err = newBench(t.on(), w, t.config); err != nil { //nolint:contextcheck // memory is freed also when ctx has ended
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }() //nolint:contextcheck // code may be unloaded after this, also when ctx has ended
	for _, s := range w.program.Schedules(&w.geometry) {
		c := &candidate{geometry: w.geometry, schedule: s}
		c.geometry.Apply(s)
		m.all = append(m.all, c)
	}
	if err := m.compile(ctx); err != nil {
		return nil, err
	}
	if err := m.verifyAll(ctx); err != nil {
		return nil, err
	}
	return m.time(ctx, t.config.Rounds)
}

// compile loads the code of all variants, on all threads of the compiler.
func (m *trial) compile(ctx context.Context) error {
	p := m.work.program
	loaded := make([]futures.Future[*variant], len(m.all))
	m.rows = make([]tune.Row, len(m.all))
	for i, c := range m.all {
		m.rows[i] = tune.Row{Variant: c.schedule.String(), Code: codeHash(p, c.geometry.Variant), Reference: i == 0}
		loaded[i] = m.work.compile(c.geometry.Variant)
	}
	for i, c := range m.all {
		v, err := loaded[i].Await(ctx)
		if err == nil {
			c.ready.set(p, v, &c.geometry, m.work.layouts[:m.work.count])
		}
		switch {
		case ended(ctx) != nil:
			return ended(ctx)
		case err != nil && (i == 0 || errors.Is(err, ErrClosed)):
			return err
		case err != nil:
			m.disqualify(i, tune.Failed, err)
		}
	}
	return nil
}

// ended returns why a context ended, or nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

func (m *trial) disqualify(i int, state tune.State, why error) {
	m.rows[i].State, m.rows[i].Why = state, why.Error()
}

// verifyAll compares the results of all variants with the reference.
func (m *trial) verifyAll(ctx context.Context) error {
	for i, c := range m.all {
		if m.rows[i].State != tune.Verified {
			continue
		}
		if err := m.late(ctx); err != nil {
			return err
		}
		state, err := m.verify(ctx, c, i == 0)
		switch {
		case ended(ctx) != nil:
			return ended(ctx)
		case err != nil && (i == 0 || state == tune.Verified):
			return err
		case err != nil:
			m.disqualify(i, state, err)
		}
	}
	return nil
}

// late returns why the trial must stop, or nil.
func (m *trial) late(ctx context.Context) error {
	if err := ended(ctx); err != nil {
		return err
	}
	if m.stopped() != nil {
		return ErrClosed
	}
	if time.Since(m.begin) > m.limit {
		return ErrTuningTime
	}
	return nil
}

// time times the variants in turns, and verifies the winner once more: a variant that is wrong at times may have been right
// before.
func (m *trial) time(ctx context.Context, rounds int) ([]tune.Row, error) {
	contest := tune.NewContest(m.rows, rounds)
	for {
		i, ok := contest.Next()
		if !ok {
			break
		}
		if err := m.late(ctx); err != nil {
			if errors.Is(err, ErrTuningTime) && contest.Rounds() >= tune.EarlyRounds {
				break // enough to choose
			}
			return nil, err
		}
		took, err := m.one(ctx, m.all[i])
		if err != nil {
			return nil, err
		}
		contest.Add(took)
	}
	for {
		best := tune.Rank(contest.Rows())
		if len(best) == 0 {
			return contest.Rows(), nil
		}
		i := m.number(best[0].Variant)
		state, err := m.verify(ctx, m.all[i], false)
		switch {
		case err == nil:
			return contest.Rows(), nil
		case ended(ctx) != nil:
			return nil, ended(ctx)
		case state == tune.Verified:
			return nil, err
		}
		contest.Disqualify(i, state, fmt.Sprintf("after it was timed: %v", err))
	}
}

func (m *trial) number(variant string) int {
	for i := range m.rows {
		if m.rows[i].Variant == variant {
			return i
		}
	}
	return 0
}

// one times a launch of a variant.
func (m *trial) one(ctx context.Context, c *candidate) (time.Duration, error) {
	if m.clock != nil {
		return m.clock(c.schedule), nil
	}
	return m.timed(ctx, c)
}

// codeHash names the text of a variant in rows.
func codeHash(p *plan.Program, v plan.Variant) string {
	sum := sha256.Sum256([]byte(p.Code(v)))
	return hex.EncodeToString(sum[:6])
}
