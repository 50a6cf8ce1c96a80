package kernel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/kernel/tune/tables"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
)

// Logger gets the events that are no errors of a call: variants that compute something else, and measurements that failed.
// *slog.Logger is a logger. Its method is called by Run, Tune, and on goroutines of the compiler.
type Logger interface {
	Warn(msg string, args ...any)
}

// tuner measures one kind of work after the other, on a goroutine that ends when the queue is empty.
type tuner struct {
	own      *cuda.Context // the compiler's
	counts   *counts
	prepared *atomic.Bool // Run compiles nothing, and measures nothing
	log      Logger       // or nil
	config   Tuning
	tables   func(tune.Device, tune.Key) []tune.Row
	clock    func(plan.Schedule) time.Duration // of tests; nil for the device's

	mu      sync.Mutex // of cold calls
	found   tune.Table // rows that were measured here
	queue   []func(ctx context.Context)
	stop    context.CancelFunc // not nil: the goroutine runs
	idle    *sync.Cond
	closing bool
}

func newTuner(own *cuda.Context, n *counts, prepared *atomic.Bool) *tuner {
	t := &tuner{own: own, counts: n, prepared: prepared, tables: tables.Rows}
	t.idle = sync.NewCond(&t.mu)
	return t
}

// measures reports whether Run is to measure work that no table has.
func (t *tuner) measures() bool { return t.config.Mode != TuneNever && !t.prepared.Load() }

// on returns the context of the measurements.
func (t *tuner) on() *cuda.Context {
	if t.config.On != nil {
		return t.config.On
	}
	return t.own
}

// device returns the key of the device in tables.
func (t *tuner) device() tune.Device {
	info := t.own.Info()
	return tune.Device{Name: info.Name, Major: info.Compute.Major, Minor: info.Compute.Minor}
}

// rows returns the rows of a key: measured here, or from the first table that has it.
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

// measured is the result of a measurement.
type measured struct {
	rows  []tune.Row
	wrong error // a *DisqualifiedError, or nil
}

// measurement is the future of a measurement.
type measurement struct{ futures.Future[measured] }

func (m measurement) await(ctx context.Context) ([]tune.Row, error) {
	found, err := m.Await(ctx)
	return found.rows, errors.Join(err, found.wrong)
}

// enqueue queues a measurement. It ends early when with does.
func (t *tuner) enqueue(with context.Context, w *work) measurement {
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
		found, err := measured{}, errEnded
		defer func() { p.Complete(found, err) }()
		found.rows, err = t.measure(joined, ctx.Err, w)
		var wrong *DisqualifiedError
		if errors.As(err, &wrong) {
			found.wrong, err = wrong, nil
		}
	})
	if t.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		t.stop = stop
		go t.run(ctx) //nolint:contextcheck // it serves later calls too
	}
	return measurement{p.Future()}
}

// now waits for the work of a Run's stream, measures, and waits. It counts and logs the result; Run then takes the best variant
// known. Errors, with which nothing is measured: the errors of cuda.Context.Synchronize.
func (t *tuner) now(c *cuda.Context, w *work) error {
	waited := false
	defer func() {
		if !waited { // also after a panic of the driver
			w.lost(true)
		}
	}()
	if err := c.Synchronize(context.Background()); err != nil {
		return err
	}
	waited = true
	_, _ = t.enqueue(context.Background(), w).await(context.Background()) // counted and logged
	return nil
}

// run measures until the queue is empty. A measurement that ends its goroutine ends no other.
func (t *tuner) run(ctx context.Context) {
	through := false
	defer func() {
		if !through {
			go t.run(ctx)
		}
	}()
	for {
		t.mu.Lock()
		if len(t.queue) == 0 {
			through = true
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

// close ends the running measurement and the queued ones.
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
	n := t.counts
	begin := time.Now()
	m := trial{clock: t.clock, stopped: stopped}
	rows, err := m.compete(ctx, t.on(), w, t.config)
	n.tuningNanos.Add(int64(time.Since(begin)))
	if err != nil {
		n.unfinished.Add(1)
		t.warn("a measurement of variants was not completed", "kernel", w.name.String(), "reason", err)
		w.lost(errors.Is(err, cuda.ErrCapturing))
		return nil, err
	}
	n.tuned.Add(1)
	wrong := &DisqualifiedError{Kernel: w.name.String()}
	for _, r := range rows {
		if r.State != tune.Verified {
			wrong.Rows = append(wrong.Rows, r)
			t.warn("a variant is disqualified", "kernel", w.name.String(), "variant", r.Variant, "state", r.State.String(), "reason", r.Why)
		}
	}
	n.disqualified.Add(int64(len(wrong.Rows)))
	t.mu.Lock()
	t.found.Set(t.device(), w.key, rows)
	t.mu.Unlock()
	w.won(rows)
	if wrong.Rows != nil {
		return rows, wrong
	}
	return rows, nil
}

func (t *tuner) warn(text string, about ...any) {
	if t.log != nil {
		t.log.Warn(text, about...)
	}
}

// DisqualifiedError names variants that are never taken. The other variants were measured.
type DisqualifiedError struct {
	Kernel string
	Rows   []tune.Row
}

// Error has each variant with the reason.
func (e *DisqualifiedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kernel: %s: %d variants are disqualified", e.Kernel, len(e.Rows))
	for _, r := range e.Rows {
		fmt.Fprintf(&b, "; %s is %v: %s", r.Variant, r.State, r.Why)
	}
	return b.String()
}
