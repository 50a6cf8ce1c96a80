package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// trial is one measurement.
type trial struct {
	*bench

	limit   time.Duration
	since   time.Time
	stopped func() error // an error once the compiler is closed
	all     []*candidate // the first one is the reference
	rows    []tune.Row
	clock   func(plan.Schedule) time.Duration
}

// compete compiles, verifies and times the variants, on the stream of a context.
func (m *trial) compete(ctx context.Context, on *cuda.Context, w *work, with Tuning) (rows []tune.Row, err error) {
	m.limit, m.since = with.Limit, time.Now()
	//nolint:contextcheck // memory is freed also when ctx has ended
	if err = uncaptured(on, func() (err error) { m.bench, err = newBench(on, w, with); return err }); err != nil {
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
	err = uncaptured(on, func() (err error) {
		if err = m.verifyAll(ctx); err == nil {
			rows, err = m.timeAll(ctx, with.Rounds)
		}
		return err
	})
	return rows, err
}

// uncaptured submits work that no graph is to have: with a *vram.CaptureError, or cuda.ErrCapturing, a capture is in progress, or
// has announced itself during submit.
func uncaptured(c *cuda.Context, submit func() error) error {
	return cuda.Together(c, func(captured bool) error {
		if captured {
			return cuda.ErrCapturing
		}
		return submit()
	})
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
		case err != nil && (i == 0 || state == tune.Verified), errors.Is(err, cuda.ErrCapturing):
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
	if time.Since(m.since) > m.limit {
		return ErrTuningTime
	}
	return nil
}

// timeAll times the variants in turns, and verifies the winner once more: a variant that is wrong at times may have been right
// before.
func (m *trial) timeAll(ctx context.Context, rounds int) ([]tune.Row, error) {
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
		case state == tune.Verified, errors.Is(err, cuda.ErrCapturing):
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
