package simulation

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/streams"
)

// world is everything of one run.
type world struct {
	scheduler
	seed     uint64
	random   *rand.Rand // draws actions; unused when a history is played
	lottery  lottery
	deeds    [kindCount]deed
	shape    shape
	mutation mutation
	mutated  int

	machine *sim.Driver
	watch   *sim.Device // steers and looks, never fails
	faults  *fault.Driver
	era     *era
	lastID  uint32
	// reserving is how many reservations callers have.
	reserving int

	ranges   ranges
	uses     uses
	held     []*buffer        // live
	stale    []streams.Buffer // freed
	freedAt  []cudadrv.Ptr    // where buffers lay that were freed
	sought   bool             // somebody has looked an address up
	pending  []*pending       // futures that somebody waits for
	sleepers []*wait          // of callers that wait for memory, or may
	ticked   bool             // since a standstill
	waiters  int              // sleepers by then
	brief    bool             // a caller wants a capture right before the next record, until right after it
	barren   int              // how often since anything lived

	// Results of the last look, and its time in resumes.
	lookedAt  uint64
	lentBytes int64
	pinned    map[cudadrv.Ptr]bool // pages that live buffers may lie on
	last      map[cudadrv.Ptr]*stream

	panicLog             recovered.Log
	turnPanic, callPanic trap
	faulty               bool   // failures were possible since all was settled last
	panics               uint64 // before that
	lossy                bool   // the driver may have kept something since the device was opened
	canceled             bool   // for mutateGrant

	report  Report
	digest  uint64
	verbose bool
	events  []string
	step    int
	fault   *breach // the first broken promise
}

// breach is a broken promise.
type breach struct {
	class string // equal for the same kind of breach
	err   error
}

func newWorld(seed uint64, m mutation) *world {
	r := rand.New(rand.NewPCG(seed, 0x7672616d)) //nolint:gosec // reproducible is the point
	w := &world{seed: seed, random: r, shape: newShape(r), mutation: m, last: map[cudadrv.Ptr]*stream{}}
	w.deeds = deeds()
	w.workers = map[string][]*task{}
	w.escaped = func(t *task, value any) {
		w.broken("panic", "a panic got out of %s: %v\n%s", t.label(), value, debug.Stack())
	}
	w.panicLog.Tell(func(p recovered.Panic) {
		if !recovered.IsPlanted(p.Value) {
			w.broken("panic", "nobody planted it: %v\n%s", p, p.Stack)
		}
	})
	w.machine = sim.New(sim.Config{TotalBytes: w.shape.totalBytes, GranularityBytes: w.shape.pageBytes, ReuseStreamIDs: w.shape.reuse})
	w.watch = w.machine.Device(0)
	w.faults = fault.Wrap(machine{w.machine, w})
	w.faults.SetBefore(func(function string) {
		w.callPanic.spring(function)
		w.reach(function)
	})
	w.openEra(r.Uint64())
	return w
}

// broken keeps the first broken promise.
func (w *world) broken(class, format string, args ...any) {
	if w.fault == nil {
		w.fault = &breach{class, fmt.Errorf(format, args...)}
		w.note("BROKEN: %s: %v", class, w.fault.err)
	}
}

// must keeps an error that may not be.
func (w *world) must(err error, class string) {
	if err != nil {
		w.broken(class, "%w", err)
	}
}

// note keeps an event for people.
func (w *world) note(format string, args ...any) {
	if w.verbose {
		w.events = append(w.events, fmt.Sprintf(format, args...))
	}
}

// mix makes a number part of the digest.
func (w *world) mix(n uint64) { w.digest = mixed(w.digest, n) }

// disturbances counts the injected failures.
func (w *world) disturbances() uint64 {
	return w.faults.Injected() + w.turnPanic.count + w.callPanic.count
}

// disturbed reports whether running requests may fail.
func (w *world) disturbed() bool { return w.faulty || w.panicked() }

func (w *world) panicked() bool { return w.turnPanic.count+w.callPanic.count > w.panics }

// heal makes the driver work, and panics stop.
func (w *world) heal() {
	w.faults.Clear()
	w.faults.SetCapacity(fault.Unlimited)
	w.turnPanic.place, w.callPanic.place = "", ""
}

// do runs a piece of work, and all tasks, to the end.
func (w *world) do(name string, work func()) {
	t := w.start(keyOf(name), name, work)
	for n := 0; len(w.tasks) > 0; n++ {
		ready := w.runnable()
		if len(ready) == 0 {
			w.hang()
			return
		}
		if n > settleLimit {
			w.broken("circles", "%s does not end: %v", name, w.labels())
			return
		}
		next := ready[0]
		if t != nil && next == t && len(ready) > 1 {
			next = ready[1]
		}
		w.resume(next, 1<<30)
		w.report.Resumes++
	}
}

func (w *world) labels() (out []string) {
	for _, t := range w.tasks {
		out = append(out, fmt.Sprintf("%s at %s", t.label(), t.paused))
	}
	return out
}

func (w *world) hang() { w.broken("hang", "nothing can run, and these wait: %v", w.labels()) }

// stuck reports whether tasks wait and none can run.
func (w *world) stuck() bool {
	for _, t := range w.tasks {
		if t.ready() {
			return false
		}
	}
	return len(w.tasks) > 0
}
