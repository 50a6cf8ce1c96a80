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

// TuningMode says when Run measures the variants of a kind of work that no table has.
type TuningMode uint8

// The modes.
const (
	TuneNever TuningMode = iota // Run measures nothing
	TuneNow                     // the first Run of a kind of work measures and waits
	TuneAside                   // the first Run starts a measurement, and a later Run takes the winner
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
	return fmt.Errorf("kernel: invalid TuningMode %q: want %s", text, strings.Join(tuningModeNames[:], ", "))
}

// Tuning says when variants are measured, and bounds the memory and the time of a measurement. The zero value measures nothing
// but in Tune.
type Tuning struct {
	Mode TuningMode
	// On has the stream of the measurements, of the compiler's device; it stays open until Close. Nil: the compiler's own,
	// which TuneAside refuses.
	On *cuda.Context
	// MemoryBytes bounds the memory of a measurement. 0: 1 GiB.
	MemoryBytes int64
	// RotateBytes is the size of all copies of the tensors together at least, up to 64 copies: more than the device's cache. 0:
	// 128 MiB.
	RotateBytes int64
	// Limit bounds the time of a measurement, looked at between launches. 0: 5 s.
	Limit time.Duration
	// Rounds is how often each variant is timed. 0: 9.
	Rounds int
}

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

// The defaults of Tuning.
const (
	tuningMemoryBytes = 1 << 30
	tuningRotateBytes = 128 << 20       // the cache of an H200 has 50 MB
	tuningLimit       = 5 * time.Second // some tensors of 64 MiB are compared in three
	tuningRounds      = 9
)

// check sets the defaults of the configuration. Errors: the errors of WithTuning.
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
	own := t.own
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

// begin queues a measurement. It ends early when with does.
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
		go t.run(ctx) //nolint:contextcheck // it serves later calls too
	}
	return measurement{p.Future()}
}

// now waits for the work of a Run's stream, measures, and waits. It counts and logs the result; Run then takes the best variant
// known.
func (t *tuner) now(c *cuda.Context, w *work) error {
	if err := c.Synchronize(context.Background()); err != nil {
		return err
	}
	_, _ = t.begin(context.Background(), w).await(context.Background()) // counted and logged
	return nil
}

// run measures until the queue is empty.
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
	rows, err := t.trial(ctx, stopped, w)
	n.tuningNanos.Add(int64(time.Since(begin)))
	if err != nil {
		n.unfinished.Add(1)
		t.warn("a measurement of variants was not completed", "kernel", w.name.String(), "reason", err)
		w.giveUp(errors.Is(err, cuda.ErrCapturing))
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
	w.settle(rows)
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
