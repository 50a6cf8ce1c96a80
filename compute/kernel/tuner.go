package kernel

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/kernel/tune/tables"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// tuner measures, one kind of work after the other, on a goroutine that ends when nothing waits.
type tuner struct {
	by     *Compiler
	config Tuning
	tables func(tune.Device, tune.Key) []tune.Row
	clock  func(plan.Schedule) time.Duration // of tests; nil for the device's

	mu      sync.Mutex // of cold calls
	found   tune.Table // rows that were measured here
	queue   []func(ctx context.Context)
	stop    context.CancelFunc // not nil: the goroutine runs
	idle    *sync.Cond
	closing bool
}

func newTuner(by *Compiler) *tuner {
	t := &tuner{by: by, tables: tables.Rows}
	t.idle = sync.NewCond(&t.mu)
	return t
}

// The defaults of Tuning.
const (
	tuningMemoryBytes = 1 << 30
	tuningRotateBytes = 128 << 20       // the cache of an H200 has 50 MB
	tuningLimit       = 5 * time.Second // some tensors of 64 MiB are compared in three
	tuningRounds      = 9
)

// check completes the configuration. Errors: those of WithTuning.
func (t *tuner) check() error {
	c := &t.config
	for _, field := range []struct {
		of        *int64
		otherwise int64
	}{{&c.MemoryBytes, tuningMemoryBytes}, {&c.RotateBytes, tuningRotateBytes}, {(*int64)(&c.Limit), int64(tuningLimit)}} {
		if *field.of <= 0 {
			*field.of = field.otherwise
		}
	}
	if c.Rounds <= 0 {
		c.Rounds = tuningRounds
	}
	own := t.by.on
	switch {
	case c.On == nil && c.Mode == TuneAside:
		return ErrTuningStream
	case c.On == nil:
		return nil
	case c.On.Stream() == nil:
		return ErrNotOpen
	case c.On.Info().UUID != own.Info().UUID:
		return ErrForeign
	case c.Mode == TuneAside && c.On.Stream() == own.Stream():
		return ErrTuningStream
	}
	return nil
}

// on is where measurements are made.
func (t *tuner) on() *cuda.Context {
	if t.config.On != nil {
		return t.config.On
	}
	return t.by.on
}

// device is the one of the rows.
func (t *tuner) device() tune.Device {
	info := t.by.on.Info()
	return tune.Device{Name: info.Name, Major: info.Compute.Major, Minor: info.Compute.Minor}
}

// rows are those of a key: measured here, or of the first table that has it.
func (t *tuner) rows(of tune.Key) (rows []tune.Row, found bool) {
	t.mu.Lock()
	rows = t.found.Rows(t.device(), of)
	t.mu.Unlock()
	if rows != nil {
		return rows, true
	}
	rows = t.tables(t.device(), of)
	return rows, rows != nil
}

// Tuned has the rows that this compiler has measured, for a later process: see WithTables.
func (c *Compiler) Tuned() *tune.Table {
	if c == nil || c.tuner == nil {
		return nil
	}
	c.tuner.mu.Lock()
	defer c.tuner.mu.Unlock()
	own := &tune.Table{}
	own.Merge(&c.tuner.found)
	return own
}

// Tune measures the variants for tensors with these types and layouts, in any mode and also where rows are known, and waits: Run takes the winner
// from here on. It touches no memory of the tensors. It returns the measured rows. The end of ctx ends it, and nothing changes. Errors:
// *DisqualifiedError, with the rows, and the others were measured; those of Run for tensors that do not fit; cuda.ErrCapturing; ErrTuningMemory,
// ErrTuningTime, ErrClosed, cuda.ErrNilContext, ctx's, vram.ErrOutOfMemory.
func (k *Kernel) Tune(ctx context.Context, outputs []*tensor.Tensor, inputs ...*tensor.Tensor) ([]tune.Row, error) {
	switch {
	case k == nil || k.by == nil:
		return nil, ErrNotOpen
	case ctx == nil:
		return nil, cuda.ErrNilContext
	}
	f := takeFrame()
	defer f.release()
	if err := f.bind(k, outputs, inputs); err != nil {
		return nil, err
	}
	if f.geometry.Empty() {
		return nil, nil
	}
	return k.by.tuner.begin(ctx, workOf(k, f)).await(ctx)
}

// measured is the result of a measurement.
type measured struct {
	rows  []tune.Row
	wrong error // a *DisqualifiedError, or nil
}

// measurement is one that was begun.
type measurement struct{ futures.Future[measured] }

func (m measurement) await(ctx context.Context) ([]tune.Row, error) {
	found, err := m.Await(ctx)
	return found.rows, errors.Join(err, found.wrong)
}

// begin puts a measurement behind those that wait. It ends with a context of the caller's, too.
func (t *tuner) begin(with context.Context, w *work) measurement {
	p := futures.NewPromise[measured](nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return measurement{futures.Failed[measured](ErrClosed)}
	}
	t.queue = append(t.queue, func(ctx context.Context) {
		joined, cancel := context.WithCancelCause(with)
		defer cancel(nil)
		defer context.AfterFunc(ctx, func() { cancel(ErrClosed) })()
		rows, err := t.measure(joined, ctx.Err, w)
		var wrong *DisqualifiedError
		if errors.As(err, &wrong) {
			p.Complete(measured{rows, wrong}, nil)
			return
		}
		p.Complete(measured{rows: rows}, err)
	})
	if t.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		t.stop = stop
		go t.run(ctx) //nolint:contextcheck // it serves more calls than this
	}
	return measurement{p.Future()}
}

// now measures behind the work of a Run's stream, and waits. The result is counted and logged; the Run goes on with the best that is known.
func (t *tuner) now(c *cuda.Context, w *work) error {
	if err := c.Synchronize(context.Background()); err != nil {
		return err
	}
	_, _ = t.begin(context.Background(), w).await(context.Background()) // counted and logged
	return nil
}

// run measures until nothing waits.
func (t *tuner) run(ctx context.Context) {
	for {
		t.mu.Lock()
		if len(t.queue) == 0 {
			t.stop()
			t.stop = nil
			t.idle.Broadcast()
			t.mu.Unlock()
			return
		}
		next := t.queue[0]
		t.queue = t.queue[1:]
		t.mu.Unlock()
		next(ctx)
	}
}

// close ends the measurement under way and those that wait.
func (t *tuner) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
	if t.stop != nil {
		t.stop()
	}
	for t.stop != nil {
		t.idle.Wait()
	}
}

// measure measures a kind of work, keeps the rows, and has Run take the winner.
// It ends with ctx, or once stopped has an error.
func (t *tuner) measure(ctx context.Context, stopped func() error, w *work) ([]tune.Row, error) {
	n, k := &t.by.counts, w.kernel
	begin := time.Now()
	rows, err := t.trial(ctx, stopped, w)
	n.tuningNanos.Add(int64(time.Since(begin)))
	if err != nil {
		n.unfinished.Add(1)
		t.warn("a measurement of variants was not completed", "kernel", k.String(), "reason", err)
		k.unmeasured(w.class, errors.Is(err, cuda.ErrCapturing))
		return nil, err
	}
	n.tuned.Add(1)
	wrong := &DisqualifiedError{Kernel: k.String()}
	for _, r := range rows {
		if r.State != tune.Verified {
			wrong.Rows = append(wrong.Rows, r)
			t.warn("a variant is disqualified", "kernel", k.String(), "variant", r.Variant, "state", r.State.String(), "reason", r.Why)
		}
	}
	n.disqualified.Add(int64(len(wrong.Rows)))
	t.mu.Lock()
	t.found.Set(t.device(), k.key(w.class), rows)
	t.mu.Unlock()
	k.settle(w.class, &w.geometry, rows)
	if wrong.Rows != nil {
		return rows, wrong
	}
	return rows, nil
}

func (t *tuner) warn(text string, about ...any) {
	if t.by.log != nil {
		t.by.log.Warn(text, about...)
	}
}

// unmeasured ends a measurement that was not completed: Run does not repeat it, unless a capture was in the way.
func (k *Kernel) unmeasured(at class, again bool) {
	c := (*k.choices.Load())[at]
	if c == nil {
		return
	}
	if again {
		c.state.CompareAndSwap(measuring, open)
		return
	}
	c.state.CompareAndSwap(measuring, settled)
}
